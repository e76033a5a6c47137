package quorate;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;

/** A way to a host that can be cut, and lead to another host afterwards. */
final class Link implements Closeable {
    private final ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final List<Socket> open = new ArrayList<>();
    private String host;

    Link(String host) throws IOException {
        this.host = host;
        start(this::accept);
    }

    String address() {
        return "127.0.0.1:" + server.getLocalPort();
    }

    /** Closes all connections, and every new one. */
    synchronized void cut() throws IOException {
        host = null;
        for (Socket socket : open) {
            socket.close();
        }
        open.clear();
    }

    /** Leads to a host from now on. */
    synchronized void lead(String host) {
        this.host = host;
    }

    @Override
    public void close() throws IOException {
        server.close();
        cut();
    }

    private void accept() {
        try {
            while (true) {
                connect(server.accept());
            }
        } catch (IOException closed) {
            // The test is over.
        }
    }

    private synchronized void connect(Socket client) throws IOException {
        if (host == null) {
            client.close();
            return;
        }
        String[] address = host.split(":");
        Socket behind = new Socket(address[0], Integer.parseInt(address[1]));
        open.add(client);
        open.add(behind);
        start(() -> copy(client, behind));
        start(() -> copy(behind, client));
    }

    private static void copy(Socket from, Socket to) {
        try (InputStream input = from.getInputStream();
                OutputStream output = to.getOutputStream()) {
            input.transferTo(output);
        } catch (IOException closed) {
            // Either end has gone; closing both tells the other.
        }
    }

    private static void start(Runnable task) {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        thread.start();
    }
}
