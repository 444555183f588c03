package latchkey.peer;

import java.nio.file.Paths;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.Revoker;

/** One thread that takes locks, one at a time, and carries out its orders in turn. */
final class Slot {
    private final String name;
    private final CuratorFramework client;
    private final ExecutorService thread;
    private volatile boolean stopped = false;
    private Grip grip = null;

    Slot(String name, CuratorFramework client) {
        this.name = name;
        this.client = client;
        this.thread =
                Executors.newSingleThreadExecutor(
                        task -> {
                            Thread made = new Thread(task, name);
                            made.setDaemon(true);
                            return made;
                        });
    }

    String name() {
        return name;
    }

    void submit(String[] words) {
        thread.execute(
                () -> {
                    try {
                        say(carryOut(words));
                    } catch (Exception e) {
                        say("failed: " + e);
                    }
                });
    }

    /** What waits is interrupted and says nothing more. */
    void stop() {
        stopped = true;
        thread.shutdownNow();
        try {
            thread.awaitTermination(5, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void say(String what) {
        if (!stopped) {
            Peer.say(name, what);
        }
    }

    private String carryOut(String[] words) throws Exception {
        switch (words[1]) {
            case "unlock":
                grip.release();
                grip = null;
                return "released";
            case "downgrade":
                grip = grip.downgrade();
                return "held " + grip.node();
            case "downgrade-in-place":
                grip = grip.downgradeInPlace();
                return "held " + grip.node();
            case "revoke":
                Revoker.attemptRevoke(client, words[2]);
                return "done";
            case "leader":
                return "leader " + new LeaderLatch(client, words[2]).getLeader().getId();
            case "participants":
                return new LeaderLatch(client, words[2])
                        .getParticipants().stream()
                                .map(Participant::getId)
                                .collect(Collectors.joining(" ", "participants ", ""));
            case "load":
                return load(words);
            default:
                grip = Grip.take(client, Wish.of(words, 1), () -> say("revoked"));
                return grip == null ? "busy" : "held " + grip.node();
        }
    }

    /** "load FOLDER COUNT KIND PATH ...": takes it so many times, with a mark while it holds. */
    private String load(String[] words) throws Exception {
        int count = Integer.parseInt(words[3]);
        Wish wish = Wish.of(words, 4);
        Section section = new Section(Paths.get(words[2]), name, wish);
        for (int i = 0; i < count; ++i) {
            Grip held = Grip.take(client, wish, () -> {});
            section.enter(held.node());
            Thread.sleep(1);
            section.leave(held.node());
            held.release();
        }
        return "done";
    }
}
