package latchkey.peer;

import java.util.Collection;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.zookeeper.CreateMode;

/** Something that is held, and how to let go of it. */
abstract class Grip {
    abstract String node();

    abstract void release() throws Exception;

    Grip downgrade() throws Exception {
        throw new IllegalStateException("not a write lock");
    }

    Grip downgradeInPlace() throws Exception {
        throw new IllegalStateException("not a write lock");
    }

    /** Waits for it; null if it is a "try-" and somebody else has it. */
    static Grip take(CuratorFramework client, Wish wish, Runnable onRevoke) throws Exception {
        switch (wish.kind) {
            case "mutex":
            case "try-mutex":
            case "revocable":
                return takeMutex(client, wish, onRevoke);
            case "read":
            case "try-read":
                return new Pair(client, wish.path).read(wish);
            case "write":
            case "try-write":
                return new Pair(client, wish.path).write(wish);
            case "semaphore":
            case "try-semaphore":
                return takeSemaphore(client, wish);
            case "latch":
                return takeLatch(client, wish);
            default:
                throw new IllegalArgumentException("what is " + wish.kind + "?");
        }
    }

    private static boolean got(InterProcessLock lock, Wish wish) throws Exception {
        if (wish.kind.startsWith("try-")) {
            return lock.acquire(0, TimeUnit.MILLISECONDS);
        }
        lock.acquire();
        return true;
    }

    private static Grip takeMutex(CuratorFramework client, Wish wish, Runnable onRevoke)
            throws Exception {
        class Mutex extends InterProcessMutex {
            Mutex() {
                super(client, wish.path);
            }

            String node() {
                return getLockPath();
            }
        }
        Mutex mutex = new Mutex();
        if (wish.kind.equals("revocable")) {
            mutex.makeRevocable(asked -> onRevoke.run());
        }
        return got(mutex, wish) ? new Held(mutex, mutex.node()) : null;
    }

    private static Grip takeSemaphore(CuratorFramework client, Wish wish) throws Exception {
        InterProcessSemaphoreV2 semaphore =
                new InterProcessSemaphoreV2(client, wish.path, wish.number(0));
        int count = wish.number(1);
        Collection<Lease> leases =
                wish.kind.startsWith("try-")
                        ? semaphore.acquire(count, 0, TimeUnit.MILLISECONDS)
                        : semaphore.acquire(count);
        if (leases == null) {
            return null;
        }
        return new Grip() {
            @Override
            String node() {
                return wish.path + "/leases/" + leases.iterator().next().getNodeName();
            }

            @Override
            void release() {
                semaphore.returnAll(leases);
            }
        };
    }

    private static Grip takeLatch(CuratorFramework client, Wish wish) throws Exception {
        LeaderLatch latch = new LeaderLatch(client, wish.path, wish.text(0));
        latch.start();
        try {
            latch.await();
        } catch (InterruptedException e) {
            latch.close();
            throw e;
        }
        return new Grip() {
            @Override
            String node() {
                return latch.getLastPathIsLeader();
            }

            @Override
            void release() throws Exception {
                latch.close();
            }
        };
    }

    /** One of Curator's locks. */
    private static class Held extends Grip {
        private final InterProcessLock lock;
        private final String node;

        Held(InterProcessLock lock, String node) {
            this.lock = lock;
            this.node = node;
        }

        @Override
        String node() {
            return node;
        }

        @Override
        void release() throws Exception {
            lock.release();
        }
    }

    private static final class Writer extends InterProcessReadWriteLock.WriteLock {
        Writer(CuratorFramework client, String path) {
            super(client, path, null);
        }

        String node() {
            return getLockPath();
        }
    }

    private static final class Reader extends InterProcessReadWriteLock.ReadLock {
        Reader(CuratorFramework client, String path, Writer writer) {
            super(client, path, null, writer);
        }

        String node() {
            return getLockPath();
        }
    }

    /** The two halves of a read-write lock. */
    private static final class Pair {
        private final CuratorFramework client;
        private final String path;
        private final Writer writer;
        private final Reader reader;

        Pair(CuratorFramework client, String path) {
            this.client = client;
            this.path = path;
            this.writer = new Writer(client, path);
            this.reader = new Reader(client, path, writer);
        }

        Grip read(Wish wish) throws Exception {
            return got(reader, wish) ? new Held(reader, reader.node()) : null;
        }

        Grip write(Wish wish) throws Exception {
            if (!got(writer, wish)) {
                return null;
            }
            return new Held(writer, writer.node()) {
                @Override
                Grip downgrade() throws Exception {
                    reader.acquire();
                    writer.release();
                    return new Held(reader, reader.node());
                }

                @Override
                Grip downgradeInPlace() throws Exception {
                    return keepNumber(node());
                }
            };
        }

        /** As Curator does it from 5.5.0 on: the reader's entry carries the writer's number. */
        private Grip keepNumber(String write) throws Exception {
            String number = write.substring(write.lastIndexOf("__WRIT__") + 8);
            String read =
                    client.create()
                            .withProtection()
                            .withMode(CreateMode.EPHEMERAL)
                            .forPath(path + "/__READ__" + number);
            writer.release();
            return new Grip() {
                @Override
                String node() {
                    return read;
                }

                @Override
                void release() throws Exception {
                    client.delete().guaranteed().forPath(read);
                }
            };
        }
    }
}
