package latchkey.tour;

import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;

/** What all parts of the tour do at each step: look at the result and print it. */
final class Steps {
    /** In seconds; only a hang reaches it. */
    static final int PATIENCE = 30;

    private static final ExecutorService THREADS =
            Executors.newCachedThreadPool(
                    task -> {
                        Thread made = new Thread(task);
                        made.setDaemon(true);
                        return made;
                    });

    private Steps() {}

    static void check(String what, Object got, Object wanted) {
        if (!Objects.equals(got, wanted)) {
            throw new AssertionError(what + ": wanted " + wanted + ", got " + got);
        }
        System.out.println(what + ": " + got);
    }

    /** The call fails with just this error of the server's. */
    static void refused(String what, KeeperException.Code code, Callable<?> call)
            throws Exception {
        try {
            Object got = call.call();
            throw new AssertionError(what + ": wanted " + code + ", got " + got);
        } catch (KeeperException e) {
            check(what, e.code(), code);
        }
    }

    static <T> T next(BlockingQueue<T> queue) throws InterruptedException {
        T item = queue.poll(PATIENCE, TimeUnit.SECONDS);
        if (item == null) {
            throw new AssertionError("nothing comes");
        }
        return item;
    }

    /** Asks again and again; each question is a round trip, which is pause enough. */
    static void until(Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE);
        while (!condition.call()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("it does not come true");
            }
        }
    }

    static <T> Future<T> beside(Callable<T> call) {
        return THREADS.submit(call);
    }

    static <T> T result(Future<T> future) throws Exception {
        return future.get(PATIENCE, TimeUnit.SECONDS);
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** A stat without its ids and times. */
    static String shape(Stat stat) {
        return String.format(
                "v%d c%d a%d, %d bytes, %d children%s%s%s",
                stat.getVersion(),
                stat.getCversion(),
                stat.getAversion(),
                stat.getDataLength(),
                stat.getNumChildren(),
                stat.getEphemeralOwner() != 0 ? ", owned" : "",
                stat.getMzxid() > stat.getCzxid() ? ", written" : "",
                stat.getPzxid() > stat.getCzxid() ? ", peopled" : "");
    }
}
