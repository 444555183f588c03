package latchkey.bench;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.RetryNTimes;

/** Apache Curator as a contestant of the benchmark; docs/benchmarks.md says what it is asked. */
final class Contestant {
    private enum Phase {
        WARM_UP,
        MEASURED,
        OVER
    }

    /** In per mille; the driver has the same list. */
    private static final int[] QUANTILES = {
        0, 10, 50, 100, 200, 250, 300, 400, 500, 600, 700, 750, 800, 900, 950, 990, 999, 1000
    };

    /** While all warm up: measured sections are empty, and two at a time would hardly ever meet. */
    private static final int SECTION_US = 200;

    private final Map<String, String> options = new HashMap<>();
    private final List<CuratorFramework> clients = new ArrayList<>();
    private final AtomicInteger violations = new AtomicInteger();
    private final AtomicReference<Exception> failure = new AtomicReference<>();
    private volatile Phase phase = Phase.WARM_UP;

    public static void main(String[] args) throws Exception {
        Contestant contestant = new Contestant();
        for (int i = 0; i + 1 < args.length; i += 2) {
            contestant.options.put(args[i].substring(2), args[i + 1]);
        }
        try {
            contestant.run();
            System.exit(0);
        } catch (Exception error) {
            error.printStackTrace();
            System.exit(1);
        }
    }

    private void run() throws Exception {
        for (int i = 0; i < number("sessions", 1); ++i) {
            clients.add(connect());
        }
        switch (options.get("workload")) {
            case "pairs" -> pairs();
            case "rw" -> pairs();
            case "drain" -> drain();
            case "hold" -> hold();
            default -> throw new IllegalArgumentException(options.get("workload"));
        }
    }

    private int number(String name, int otherwise) {
        return Integer.parseInt(options.getOrDefault(name, String.valueOf(otherwise)));
    }

    private double real(String name, double otherwise) {
        return Double.parseDouble(options.getOrDefault(name, String.valueOf(otherwise)));
    }

    private CuratorFramework connect() throws Exception {
        CuratorFramework client =
                CuratorFrameworkFactory.builder()
                        .connectString(options.get("connect"))
                        .sessionTimeoutMs(30_000)
                        .connectionTimeoutMs(30_000)
                        .retryPolicy(new RetryNTimes(100, 50))
                        // The servers' own idea of their addresses does not know the proxy.
                        .ensembleTracker(false)
                        .build();
        client.start();
        if (!client.blockUntilConnected(60, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection");
        }
        return client;
    }

    // ---- What is inside -----------------------------------------------------------------------

    /** Readers count one each, a writer, or the holder of a mutex, a million. */
    private static final class Section {
        private static final int WRITER = 1_000_000;
        private final AtomicInteger inside = new AtomicInteger();

        boolean enter(boolean writing) {
            int before = inside.getAndAdd(writing ? WRITER : 1);
            return writing ? before == 0 : before < WRITER;
        }

        void leave(boolean writing) {
            inside.addAndGet(writing ? -WRITER : -1);
        }
    }

    /** One lock in the hands of one worker; for "rw" one of ten turns is a writer's. */
    private final class Locker {
        private final InterProcessLock exclusive;
        private final InterProcessLock shared;
        private final Section section;
        private final List<Long> latencies = new ArrayList<>();
        private int turn;

        Locker(CuratorFramework client, String path, Section section, int turn) {
            this.section = section;
            this.turn = turn;
            if (options.get("workload").equals("rw")) {
                InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, path);
                exclusive = both.writeLock();
                shared = both.readLock();
            } else {
                exclusive = new InterProcessMutex(client, path);
                shared = null;
            }
        }

        void work() {
            try {
                while (phase != Phase.OVER) {
                    boolean measured = phase == Phase.MEASURED;
                    long start = System.nanoTime();
                    pair(!measured);
                    if (measured) {
                        latencies.add(System.nanoTime() - start);
                    }
                }
            } catch (Exception error) {
                failure.set(error);
            }
        }

        void pair(boolean stays) throws Exception {
            boolean writing = shared == null || ++turn % 10 == 0;
            InterProcessLock lock = writing ? exclusive : shared;
            lock.acquire();
            if (!section.enter(writing)) {
                violations.incrementAndGet();
            }
            if (stays) {
                TimeUnit.MICROSECONDS.sleep(SECTION_US);
            }
            section.leave(writing);
            lock.release();
        }
    }

    // ---- Workloads ----------------------------------------------------------------------------

    private void pairs() throws Exception {
        int each = number("workers", 1);
        boolean one = options.getOrDefault("locks", "own").equals("one");
        boolean rw = options.get("workload").equals("rw");
        Section shared = new Section();
        List<Locker> lockers = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < clients.size() * each; ++i) {
            String path = options.get("path") + "/" + (rw ? "rw" : one ? "0" : String.valueOf(i));
            Section section = one || rw ? shared : new Section();
            Locker locker = new Locker(clients.get(i / each), path, section, i * 3);
            lockers.add(locker);
            threads.add(new Thread(locker::work));
        }
        threads.forEach(Thread::start);
        Thread.sleep((long) (real("warmup", 1) * 1000));
        say("begin");
        long processor = processorNs();
        long start = System.nanoTime();
        phase = Phase.MEASURED;
        Thread.sleep((long) (real("seconds", 1) * 1000));
        phase = Phase.OVER;
        double seconds = (System.nanoTime() - start) / 1e9;
        double processorSeconds = (processorNs() - processor) / 1e9;
        for (Thread thread : threads) {
            thread.join();
        }
        if (failure.get() != null) {
            throw failure.get();
        }
        report(lockers, seconds, processorSeconds);
    }

    private void report(List<Locker> lockers, double seconds, double processorSeconds)
            throws Exception {
        long[] all = lockers.stream().flatMap(l -> l.latencies.stream()).mapToLong(l -> l).toArray();
        Arrays.sort(all);
        StringBuilder quantiles = new StringBuilder();
        for (int point : QUANTILES) {
            if (all.length > 0) {
                quantiles.append(quantiles.length() == 0 ? "" : ",");
                quantiles.append(all[(int) ((long) (all.length - 1) * point / 1000)] / 1e3);
            }
        }
        int fewest = lockers.stream().mapToInt(l -> l.latencies.size()).min().orElse(0);
        int most = lockers.stream().mapToInt(l -> l.latencies.size()).max().orElse(0);
        say(
                "{\"ops\": " + all.length + ", \"seconds\": " + seconds
                        + ", \"cpu_s\": " + processorSeconds + ", \"rss_kb\": " + residentKb()
                        + ", \"quantiles_us\": [" + quantiles + "], \"samples\": " + all.length
                        + ", \"fewest\": " + fewest + ", \"most\": " + most
                        + ", \"violations\": " + violations.get() + "}");
    }

    /** Everybody queues behind one holder; when the driver has seen them all it says go. */
    private void drain() throws Exception {
        int waiters = number("waiters", 100);
        String path = options.get("path") + "/0";
        CuratorFramework outside = connect();
        warmUp(new InterProcessMutex(outside, options.get("path") + "/warm-up"));
        InterProcessMutex holder = new InterProcessMutex(outside, path);
        holder.acquire();
        Section section = new Section();
        CountDownLatch done = new CountDownLatch(waiters);
        say("begin");
        long processor = processorNs();
        for (int i = 0; i < waiters; ++i) {
            TimeUnit.MICROSECONDS.sleep(number("gap-us", 0));
            Locker locker = new Locker(clients.get(i % clients.size()), path, section, 0);
            new Thread(null, () -> {
                try {
                    locker.pair(false);
                } catch (Exception error) {
                    failure.set(error);
                }
                done.countDown();
            }, "waiter", 128 * 1024).start();
        }
        waitForGo();
        long start = System.nanoTime();
        holder.release();
        done.await();
        if (failure.get() != null) {
            throw failure.get();
        }
        say(
                "{\"ops\": " + waiters + ", \"seconds\": " + (System.nanoTime() - start) / 1e9
                        + ", \"cpu_s\": " + (processorNs() - processor) / 1e9
                        + ", \"rss_kb\": " + residentKb()
                        + ", \"violations\": " + violations.get() + "}");
    }

    private void warmUp(InterProcessMutex mutex) throws Exception {
        long end = System.nanoTime() + (long) (real("warmup", 1) * 1e9);
        while (System.nanoTime() < end) {
            mutex.acquire();
            mutex.release();
        }
    }

    /** Holds locks until the driver says go. */
    private void hold() throws Exception {
        int held = number("held", 1);
        List<InterProcessMutex> locks = new ArrayList<>();
        for (int i = 0; i < held; ++i) {
            locks.add(new InterProcessMutex(clients.get(0), options.get("path") + "/" + i));
            locks.get(i).acquire();
        }
        say("begin");
        waitForGo();
        say("{\"ops\": " + held + ", \"rss_kb\": " + residentKb() + ", \"violations\": 0}");
        clients.forEach(CuratorFramework::close);
    }

    // ---- The process --------------------------------------------------------------------------

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static void waitForGo() throws Exception {
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)).readLine();
    }

    private static long processorNs() {
        return ((com.sun.management.OperatingSystemMXBean)
                        ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }

    private static long residentKb() throws Exception {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", ""));
            }
        }
        return 0;
    }
}
