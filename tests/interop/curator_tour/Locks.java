package latchkey.tour;

import static latchkey.tour.Steps.beside;
import static latchkey.tour.Steps.check;
import static latchkey.tour.Steps.next;
import static latchkey.tour.Steps.result;
import static latchkey.tour.Steps.until;

import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;

/** What excludes, and who leads. */
final class Locks {
    private static final int BRIEFLY_MS = 200;

    private final CuratorFramework client;
    private final CuratorFramework other;
    private final String root;

    Locks(CuratorFramework client, CuratorFramework other, String root) {
        this.client = client;
        this.other = other;
        this.root = root;
    }

    void run() throws Exception {
        mutex();
        readWrite();
        semaphore();
        several();
        latch();
        selector();
    }

    private static boolean take(InterProcessLock lock) throws Exception {
        return lock.acquire(Steps.PATIENCE, TimeUnit.SECONDS);
    }

    private static boolean tryTake(InterProcessLock lock) throws Exception {
        return lock.acquire(BRIEFLY_MS, TimeUnit.MILLISECONDS);
    }

    private void mutex() throws Exception {
        InterProcessMutex mine = new InterProcessMutex(client, root + "/mutex");
        InterProcessMutex theirs = new InterProcessMutex(other, root + "/mutex");
        check("InterProcessMutex", take(mine), true);
        check("InterProcessMutex again", take(mine), true);
        check("InterProcessMutex that is held", tryTake(theirs), false);
        Future<Boolean> waiting = beside(() -> {
            boolean held = take(theirs);
            theirs.release();
            return held;
        });
        until(() -> mine.getParticipantNodes().size() == 2);
        mine.release();
        check("InterProcessMutex, still ours", mine.isOwnedByCurrentThread(), true);
        mine.release();
        check("InterProcessMutex of the next in line", result(waiting), true);

        InterProcessSemaphoreMutex simple = new InterProcessSemaphoreMutex(client, root + "/sm");
        check("InterProcessSemaphoreMutex", take(simple), true);
        check("InterProcessSemaphoreMutex that is held",
                tryTake(new InterProcessSemaphoreMutex(other, root + "/sm")), false);
        simple.release();
    }

    private void readWrite() throws Exception {
        InterProcessReadWriteLock mine = new InterProcessReadWriteLock(client, root + "/rw");
        InterProcessReadWriteLock theirs = new InterProcessReadWriteLock(other, root + "/rw");
        check("two readers", take(mine.readLock()) && take(theirs.readLock()), true);
        check("a writer beside readers", tryTake(theirs.writeLock()), false);
        mine.readLock().release();
        theirs.readLock().release();
        check("a writer", take(mine.writeLock()), true);
        check("a reader beside a writer", tryTake(theirs.readLock()), false);
        check("the writer reads too", take(mine.readLock()), true);
        mine.writeLock().release();
        check("and goes on reading beside others", take(theirs.readLock()), true);
        theirs.readLock().release();
        mine.readLock().release();
    }

    private void semaphore() throws Exception {
        InterProcessSemaphoreV2 mine = new InterProcessSemaphoreV2(client, root + "/s", 2);
        InterProcessSemaphoreV2 theirs = new InterProcessSemaphoreV2(other, root + "/s", 2);
        Lease first = mine.acquire();
        Lease second = theirs.acquire();
        check("InterProcessSemaphoreV2", mine.getParticipantNodes().size(), 2);
        check("InterProcessSemaphoreV2 that is full",
                mine.acquire(BRIEFLY_MS, TimeUnit.MILLISECONDS), null);
        Future<Lease> waiting = beside(() -> theirs.acquire(Steps.PATIENCE, TimeUnit.SECONDS));
        mine.returnLease(first);
        Lease third = result(waiting);
        check("InterProcessSemaphoreV2 with room again", third != null, true);
        theirs.returnAll(List.of(second, third));
        check("InterProcessSemaphoreV2, several",
                mine.acquire(2, Steps.PATIENCE, TimeUnit.SECONDS).size(), 2);
    }

    private void several() throws Exception {
        InterProcessMultiLock all =
                new InterProcessMultiLock(client, List.of(root + "/m1", root + "/m2"));
        check("InterProcessMultiLock", take(all), true);
        InterProcessMutex one = new InterProcessMutex(other, root + "/m2");
        check("InterProcessMultiLock holds each", tryTake(one), false);
        all.release();
        check("InterProcessMultiLock lets all go", take(one), true);
        one.release();
    }

    private void latch() throws Exception {
        LeaderLatch first = new LeaderLatch(client, root + "/latch", "first");
        LeaderLatch second = new LeaderLatch(other, root + "/latch", "second");
        first.start();
        check("LeaderLatch", first.await(Steps.PATIENCE, TimeUnit.SECONDS), true);
        second.start();
        until(() -> first.getParticipants().size() == 2);
        check("LeaderLatch, participants", first.getParticipants().stream()
                .map(Participant::getId).collect(Collectors.toList()), List.of("first", "second"));
        check("LeaderLatch, leader", second.getLeader().getId(), "first");
        check("LeaderLatch of the second", second.hasLeadership(), false);
        first.close();
        check("LeaderLatch, next", second.await(Steps.PATIENCE, TimeUnit.SECONDS), true);
        second.close();
    }

    private void selector() throws Exception {
        BlockingQueue<String> leads = new LinkedBlockingQueue<>();
        CountDownLatch resign = new CountDownLatch(1);
        LeaderSelector first = selector(client, "first", leads, resign);
        first.start();
        check("LeaderSelector", next(leads), "first");
        LeaderSelector second = selector(other, "second", leads, resign);
        second.start();
        until(() -> first.getParticipants().size() == 2);
        check("LeaderSelector, leader", second.getLeader().getId(), "first");
        resign.countDown();
        check("LeaderSelector, next", next(leads), "second");
        first.close();
        second.close();
    }

    private LeaderSelector selector(CuratorFramework from, String id, BlockingQueue<String> leads,
            CountDownLatch resign) {
        LeaderSelector made = new LeaderSelector(from, root + "/selector",
                new LeaderSelectorListenerAdapter() {
                    @Override
                    public void takeLeadership(CuratorFramework ignored) throws Exception {
                        leads.add(id);
                        resign.await();
                    }
                });
        made.setId(id);
        return made;
    }
}
