//! Operators' orders: keyspaces are made, altered, dropped and shown, partitions given away.
//!
//! They take the way of the HTTP door's, to the catalog's lane, which alone knows what is allowed.

use super::about;
use super::problem::{self, Problem};
use super::service::{Asking, GRACE, Native};
use crate::units::spelt;
use quorate_api::v1;
use quorate_host::engines;
use quorate_host::{OperatorReply, OperatorRequest, Silence};
use quorate_kernel::keyspace::{KeyspaceOrder, NewKeyspace};
use std::time::Instant;

impl Native {
    /// `Admin.ShowKeyspace`.
    ///
    /// # Errors
    /// No keyspace has the name, or the host does not answer.
    pub async fn show_keyspace(
        &self,
        request: v1::ShowKeyspaceRequest,
        asking: &Asking,
    ) -> Result<v1::ShowKeyspaceResponse, Problem> {
        let deadline = self.deadline(request.timeout_ms, asking);
        let OperatorReply::Keyspaces(all) = self.ask(OperatorRequest::Keyspaces, deadline).await?
        else {
            return Err(problem::mismatch());
        };
        let found = all.list.iter().find(|(keyspace, _)| keyspace.name == request.name);
        let Some((keyspace, _)) = found else {
            // It may be that nothing is known yet.
            self.find(&request.name)?;
            let names: Vec<&str> = all.list.iter().map(|(it, _)| it.name.as_str()).collect();
            return Err(problem::no_keyspace(&request.name, &names));
        };
        let (keyspace, coordinator) = (Some(about::details(keyspace)), Some(self.me()));
        Ok(v1::ShowKeyspaceResponse { keyspace, coordinator })
    }

    /// `Admin.CreateKeyspace`.
    ///
    /// # Errors
    /// It was not made, or nobody can say; the problem tells, here and below.
    pub async fn create_keyspace(
        &self,
        request: v1::CreateKeyspaceRequest,
        asking: &Asking,
    ) -> Result<v1::CreateKeyspaceResponse, Problem> {
        let v1::CreateKeyspaceRequest { name, engine, settings, timeout_ms } = request;
        let engine = if engine.is_empty() { engines::usual().to_owned() } else { engine };
        let order = KeyspaceOrder::Create(NewKeyspace { name, engine, settings: spelt(settings) });
        self.order(OperatorRequest::Keyspace(order), timeout_ms, asking).await?;
        Ok(v1::CreateKeyspaceResponse { coordinator: Some(self.me()) })
    }

    /// `Admin.AlterKeyspace`.
    ///
    /// # Errors
    /// See [`Native::create_keyspace`].
    pub async fn alter_keyspace(
        &self,
        request: v1::AlterKeyspaceRequest,
        asking: &Asking,
    ) -> Result<v1::AlterKeyspaceResponse, Problem> {
        let v1::AlterKeyspaceRequest { name, settings, timeout_ms } = request;
        let order = KeyspaceOrder::Alter { name, settings: spelt(settings) };
        self.order(OperatorRequest::Keyspace(order), timeout_ms, asking).await?;
        Ok(v1::AlterKeyspaceResponse { coordinator: Some(self.me()) })
    }

    /// `Admin.DropKeyspace`.
    ///
    /// # Errors
    /// See [`Native::create_keyspace`].
    pub async fn drop_keyspace(
        &self,
        request: v1::DropKeyspaceRequest,
        asking: &Asking,
    ) -> Result<v1::DropKeyspaceResponse, Problem> {
        let order = KeyspaceOrder::Drop { name: request.name };
        self.order(OperatorRequest::Keyspace(order), request.timeout_ms, asking).await?;
        Ok(v1::DropKeyspaceResponse { coordinator: Some(self.me()) })
    }

    /// `Admin.ReplacePartition`.
    ///
    /// # Errors
    /// See [`Native::create_keyspace`].
    pub async fn replace_partition(
        &self,
        request: v1::ReplacePartitionRequest,
        asking: &Asking,
    ) -> Result<v1::ReplacePartitionResponse, Problem> {
        let v1::ReplacePartitionRequest { keyspace, partition, host, timeout_ms } = request;
        let request = OperatorRequest::Replace { keyspace, partition, host };
        self.order(request, timeout_ms, asking).await?;
        Ok(v1::ReplacePartitionResponse { coordinator: Some(self.me()) })
    }

    /// Gives an order to the catalog.
    async fn order(
        &self,
        request: OperatorRequest,
        timeout_ms: u32,
        asking: &Asking,
    ) -> Result<(), Problem> {
        let deadline = self.deadline(timeout_ms, asking);
        match self.ask(request, deadline).await? {
            OperatorReply::Done => Ok(()),
            _ => Err(problem::mismatch()),
        }
    }

    /// Asks the core thread.
    ///
    /// # Errors
    /// It refuses, or does not answer: then an order may be carried out yet.
    pub(super) async fn ask(
        &self,
        request: OperatorRequest,
        deadline: Instant,
    ) -> Result<OperatorReply, Problem> {
        let is_order = request.is_order();
        let asked = self.calls.ask_by(request, Some(deadline));
        match tokio::time::timeout_at((deadline + GRACE).into(), asked).await {
            Ok(Ok(OperatorReply::Refused(refusal))) => Err(problem::refused(&refusal)),
            Ok(Ok(OperatorReply::Unknown(what))) => Err(problem::no_host(what)),
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(Silence::InHand)) if is_order => {
                Err(problem::order_unknown(&problem::stopping().what))
            }
            Ok(Err(_)) => Err(problem::stopping()),
            Err(_) if is_order => Err(problem::order_unknown(&problem::no_answer().what)),
            Err(_) => Err(problem::no_answer()),
        }
    }
}
