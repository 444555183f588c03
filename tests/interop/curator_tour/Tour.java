package latchkey.tour;

import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryNTimes;

/**
 * Apache Curator's calls and recipes against one server, "HOST:PORT".
 *
 * <p>Each step checks what came back and prints a line without ids and times, so the lines of two
 * servers that behave alike are the same. The first step that goes wrong ends the tour.
 */
final class Tour {
    private static final String ROOT = "/curator-tour";

    private Tour() {}

    public static void main(String[] args) {
        try {
            CuratorFramework client = connect(args[0], "ann:secret");
            CuratorFramework other = connect(args[0], "bob:word");
            client.create().forPath(ROOT);
            new Calls(client, other, ROOT).run();
            new Locks(client, other, ROOT + "/locks").run();
            new Recipes(client, other, ROOT + "/recipes").run();
            new Caches(client, other, ROOT + "/caches").run();
            other.close();
            client.close();
            System.out.println("the end");
        } catch (Throwable e) {
            e.printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }

    private static CuratorFramework connect(String host, String who) throws Exception {
        CuratorFramework client =
                CuratorFrameworkFactory.builder()
                        .connectString(host)
                        .sessionTimeoutMs(20_000)
                        .connectionTimeoutMs(10_000)
                        .retryPolicy(new RetryNTimes(3, 100))
                        .authorization("digest", Steps.bytes(who))
                        .build();
        client.start();
        boolean there = client.blockUntilConnected(Steps.PATIENCE, TimeUnit.SECONDS);
        Steps.check("connected as " + who.replaceFirst(":.*", ""), there, true);
        return client;
    }
}
