package latchkey.tour;

import static latchkey.tour.Steps.beside;
import static latchkey.tour.Steps.bytes;
import static latchkey.tour.Steps.check;
import static latchkey.tour.Steps.next;
import static latchkey.tour.Steps.result;
import static latchkey.tour.Steps.text;
import static latchkey.tour.Steps.until;

import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.CreateMode;

/** Counters, barriers, queues and nodes that stay. */
final class Recipes {
    private final CuratorFramework client;
    private final CuratorFramework other;
    private final String root;

    Recipes(CuratorFramework client, CuratorFramework other, String root) {
        this.client = client;
        this.other = other;
        this.root = root;
    }

    void run() throws Exception {
        counters();
        barriers();
        queues();
        nodes();
    }

    private void counters() throws Exception {
        RetryNTimes retry = new RetryNTimes(5, 10);
        DistributedAtomicLong mine = new DistributedAtomicLong(client, root + "/long", retry);
        DistributedAtomicLong theirs = new DistributedAtomicLong(other, root + "/long", retry);
        check("DistributedAtomicLong.initialize", mine.initialize(40L), true);
        check("DistributedAtomicLong.initialize again", theirs.initialize(1L), false);
        check("DistributedAtomicLong.increment", mine.increment().postValue(), 41L);
        check("DistributedAtomicLong.add", theirs.add(9L).postValue(), 50L);
        check("DistributedAtomicLong.subtract", mine.subtract(1L).preValue(), 50L);
        check("DistributedAtomicLong.compareAndSet", mine.compareAndSet(49L, 7L).succeeded(), true);
        check("DistributedAtomicLong.compareAndSet, too late",
                theirs.compareAndSet(49L, 8L).succeeded(), false);
        theirs.forceSet(3L);
        check("DistributedAtomicLong.get", mine.get().postValue(), 3L);

        try (SharedCount count = new SharedCount(client, root + "/shared", 5);
                SharedCount seen = new SharedCount(other, root + "/shared", 0)) {
            count.start();
            seen.start();
            check("SharedCount", seen.getCount(), 5);
            check("SharedCount.trySetCount", count.trySetCount(count.getVersionedValue(), 6), true);
            until(() -> seen.getCount() == 6);
            check("SharedCount of the other", seen.getVersionedValue().getVersion(), 1);
        }
    }

    private void barriers() throws Exception {
        DistributedBarrier barrier = new DistributedBarrier(client, root + "/barrier");
        barrier.setBarrier();
        check("DistributedBarrier", barrier.waitOnBarrier(100, TimeUnit.MILLISECONDS), false);
        Future<Boolean> waiting = beside(() -> new DistributedBarrier(other, root + "/barrier")
                .waitOnBarrier(Steps.PATIENCE, TimeUnit.SECONDS));
        barrier.removeBarrier();
        check("DistributedBarrier that went", result(waiting), true);

        DistributedDoubleBarrier mine = new DistributedDoubleBarrier(client, root + "/double", 2);
        DistributedDoubleBarrier theirs = new DistributedDoubleBarrier(other, root + "/double", 2);
        Future<Boolean> enters = beside(() -> mine.enter(Steps.PATIENCE, TimeUnit.SECONDS));
        check("DistributedDoubleBarrier.enter", theirs.enter(Steps.PATIENCE, TimeUnit.SECONDS),
                true);
        check("DistributedDoubleBarrier.enter, both", result(enters), true);
        Future<Boolean> leaves = beside(() -> mine.leave(Steps.PATIENCE, TimeUnit.SECONDS));
        check("DistributedDoubleBarrier.leave", theirs.leave(Steps.PATIENCE, TimeUnit.SECONDS),
                true);
        check("DistributedDoubleBarrier.leave, both", result(leaves), true);
    }

    private void queues() throws Exception {
        BlockingQueue<String> got = new LinkedBlockingQueue<>();
        QueueConsumer<String> consumer = new QueueConsumer<>() {
            @Override
            public void consumeMessage(String message) {
                got.add(message);
            }

            @Override
            public void stateChanged(CuratorFramework from, ConnectionState state) {}
        };
        QueueSerializer<String> words = new QueueSerializer<>() {
            @Override
            public byte[] serialize(String item) {
                return bytes(item);
            }

            @Override
            public String deserialize(byte[] item) {
                return text(item);
            }
        };
        try (DistributedQueue<String> in =
                        QueueBuilder.builder(client, null, words, root + "/queue").buildQueue();
                DistributedQueue<String> out =
                        QueueBuilder.builder(other, consumer, words, root + "/queue")
                                .lockPath(root + "/queue-locks").buildQueue()) {
            in.start();
            out.start();
            in.put("one");
            check("DistributedQueue", next(got), "one");
            in.put("two");
            check("DistributedQueue, next", next(got), "two");
        }
        SimpleDistributedQueue simple = new SimpleDistributedQueue(client, root + "/simple");
        check("SimpleDistributedQueue", simple.poll(), null);
        simple.offer(bytes("a"));
        simple.offer(bytes("b"));
        check("SimpleDistributedQueue.peek", text(simple.peek()), "a");
        check("SimpleDistributedQueue.take", text(simple.take()), "a");
        check("SimpleDistributedQueue of the other",
                text(new SimpleDistributedQueue(other, root + "/simple")
                        .poll(Steps.PATIENCE, TimeUnit.SECONDS)),
                "b");
    }

    private void nodes() throws Exception {
        String path = root + "/node";
        try (PersistentNode node =
                new PersistentNode(client, CreateMode.EPHEMERAL, false, path, bytes("here"))) {
            node.start();
            check("PersistentNode", node.waitForInitialCreate(Steps.PATIENCE, TimeUnit.SECONDS),
                    true);
            other.delete().forPath(path);
            until(() -> other.checkExists().forPath(path) != null);
            check("PersistentNode comes back", text(other.getData().forPath(path)), "here");
            node.setData(bytes("there"));
            until(() -> text(other.getData().forPath(path)).equals("there"));
        }
        check("PersistentNode that was closed", other.checkExists().forPath(path), null);

        try (PersistentTtlNode node =
                new PersistentTtlNode(client, root + "/ttl", 2_000, bytes("t"))) {
            node.start();
            check("PersistentTtlNode", node.waitForInitialCreate(Steps.PATIENCE, TimeUnit.SECONDS),
                    true);
            until(() -> other.checkExists().forPath(root + "/ttl/touch") != null);
        }
        try (GroupMember ann = new GroupMember(client, root + "/group", "ann");
                GroupMember bob = new GroupMember(other, root + "/group", "bob")) {
            ann.start();
            bob.start();
            until(() -> ann.getCurrentMembers().size() == 2);
            Set<String> names = new TreeSet<>(ann.getCurrentMembers().keySet());
            check("GroupMember", List.copyOf(names), List.of("ann", "bob"));
        }
    }
}
