// A proxy in front of the server, whose connections are slowed down or ended.
import { connect, createServer } from "node:net";

/** Starts a proxy of a server. `accept` gets each connection, and returns the function that takes the
 * bytes of its requests. */
export async function startProxy(url, accept) {
  const clients = new Set();
  const proxy = createServer((client) => {
    clients.add(client);
    const server = connect(Number(new URL(url).port), "127.0.0.1");
    const end = () => {
      clients.delete(client);
      client.destroy();
      server.destroy();
    };
    client.on("data", accept({ client, end, send: (bytes) => server.write(bytes) }));
    server.on("data", (bytes) => client.write(bytes));
    for (const socket of [client, server]) socket.on("close", end).on("error", end);
  });
  const listen = async (port) => await new Promise((done) => proxy.listen(port, "127.0.0.1", done));
  await listen(0);
  const { port } = proxy.address();
  const disconnect = () => clients.forEach((client) => client.destroy());
  return {
    port,
    disconnect,
    /** Ends all connections, and accepts no more until `reopen`. */
    close: () => {
      proxy.close();
      disconnect();
    },
    reopen: async () => await listen(port),
  };
}
