package latchkey.peer;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryNTimes;

/**
 * Apache Curator's locks behind a line protocol; tests/interop/peer.hpp says what it is.
 *
 * <p>A line is for a connection ("c1 connect HOSTS TIMEOUT_MS") or for a thread on it ("c1.a mutex
 * /path"). Threads matter, because Curator's locks belong to the thread that took them.
 */
final class Peer {
    private final Map<String, CuratorFramework> clients = new HashMap<>();
    private final Map<String, Slot> slots = new HashMap<>();

    private Peer() {}

    public static void main(String[] args) throws Exception {
        Peer peer = new Peer();
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            peer.handle(line.split(" "));
        }
        for (CuratorFramework client : peer.clients.values()) {
            client.close();
        }
        System.exit(0);
    }

    static void say(String who, String what) {
        synchronized (Peer.class) {
            System.out.println(who + " " + what);
            System.out.flush();
        }
    }

    private void handle(String[] words) throws Exception {
        String who = words[0];
        int dot = who.indexOf('.');
        if (dot >= 0) {
            CuratorFramework client = clients.get(who.substring(0, dot));
            slots.computeIfAbsent(who, name -> new Slot(name, client)).submit(words);
        } else if (words[1].equals("connect")) {
            connect(who, words[2], Integer.parseInt(words[3]));
        } else if (words[1].equals("close")) {
            close(who);
        } else {
            say(who, "failed: what is " + words[1] + "?");
        }
    }

    private void connect(String name, String hosts, int timeoutMs) throws Exception {
        CuratorFramework client =
                CuratorFrameworkFactory.builder()
                        .connectString(hosts)
                        .sessionTimeoutMs(timeoutMs)
                        .connectionTimeoutMs(10_000)
                        .retryPolicy(new RetryNTimes(100, 50))
                        // The servers' own idea of their addresses does not know our proxies.
                        .ensembleTracker(false)
                        .build();
        client.start();
        clients.put(name, client);
        boolean there = client.blockUntilConnected(20, TimeUnit.SECONDS);
        say(name, there ? "connected" : "failed: no connection");
    }

    private void close(String name) {
        for (Iterator<Slot> each = slots.values().iterator(); each.hasNext(); ) {
            Slot slot = each.next();
            if (slot.name().startsWith(name + ".")) {
                slot.stop();
                each.remove();
            }
        }
        clients.remove(name).close();
        say(name, "closed");
    }
}
