package quorate;

import java.util.UUID;

/** The server under test; ../../../../../endpoint.py describes the environment. */
final class Endpoint {
    static final String HOST = address()[0];
    static final int PORT = Integer.parseInt(address()[1]);

    /** The number of a keyspace with transactions; plain Redis has one of that number too. */
    static final int TRANSACTIONAL = 2;

    private Endpoint() {}

    static String key(String name) {
        return "clients:java:" + UUID.randomUUID() + ":" + name;
    }

    private static String[] address() {
        String endpoint = System.getenv().getOrDefault("RESP_ENDPOINT", "127.0.0.1:6379");
        return endpoint.split(":");
    }
}
