//! The lane of the keyspace: the engine, or the baseline that the lab measures it against.

use super::World;
use super::section::AntiEntropy;
use quorate_kernel::ids::ClusterId;
use quorate_kernel::lane::Lane;
use quorate_kernel::time::Span;
use quorate_protocols::causal::token::Tokens;
use quorate_protocols::causal::{self, Settings};
use quorate_protocols::merkle;

/// Small trees, so that leaves hold several keys and several leaves differ.
const WIDTH: u32 = 2;

impl World<'_> {
    pub(super) fn lane(&self) -> Box<dyn Lane> {
        match self.section.anti_entropy {
            AntiEntropy::Clocks => causal::lane(self.settings()),
            AntiEntropy::Merkle => merkle::lane(merkle::Settings {
                sync_interval: Span::millis(self.section.sync_ms),
                replicate_on_write: self.section.replicate_on_write,
                width: WIDTH,
                ..merkle::Settings::usual(self.shape, Some(self.map.clone()), tokens())
            }),
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            r: self.section.r,
            w: self.section.w,
            limits: self.section.limits.limits(),
            replicate_on_write: self.section.replicate_on_write,
            read_repair: self.section.read_repair,
            sync_interval: Span::millis(self.section.sync_ms),
            strip_interval: Span::millis(self.section.strip_ms),
            siblings_warn: 4,
            ..Settings::usual(self.shape, Some(self.map.clone()), tokens())
        }
    }
}

fn tokens() -> Tokens {
    Tokens::new(b"the simulated cluster's secret", ClusterId(1))
}
