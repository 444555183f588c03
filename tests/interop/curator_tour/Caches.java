package latchkey.tour;

import static latchkey.tour.Steps.bytes;
import static latchkey.tour.Steps.check;
import static latchkey.tour.Steps.next;
import static latchkey.tour.Steps.text;
import static latchkey.tour.Steps.until;

import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.NodeCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.curator.framework.recipes.watch.PersistentWatcher;

/** What follows a part of the tree. */
@SuppressWarnings("deprecation") // The older caches are what older programs use.
final class Caches {
    private final CuratorFramework client;
    private final CuratorFramework other;
    private final String root;

    Caches(CuratorFramework client, CuratorFramework other, String root) {
        this.client = client;
        this.other = other;
        this.root = root;
    }

    void run() throws Exception {
        other.create().creatingParentsIfNeeded().forPath(root + "/a", bytes("1"));
        nodeCache();
        pathChildrenCache();
        treeCache();
        curatorCache();
        persistentWatcher();
    }

    /** The same changes for each of them. */
    private void change() throws Exception {
        other.create().forPath(root + "/b", bytes("new"));
        other.setData().forPath(root + "/b", bytes("newer"));
        other.delete().forPath(root + "/b");
    }

    private void nodeCache() throws Exception {
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        try (NodeCache cache = new NodeCache(client, root + "/a")) {
            cache.getListenable().addListener(() -> told.add(
                    cache.getCurrentData() == null ? "nothing"
                            : text(cache.getCurrentData().getData())));
            cache.start(true);
            check("NodeCache", text(cache.getCurrentData().getData()), "1");
            other.setData().forPath(root + "/a", bytes("2"));
            check("NodeCache, changed", next(told), "2");
            other.delete().forPath(root + "/a");
            check("NodeCache, deleted", next(told), "nothing");
            other.create().forPath(root + "/a", bytes("3"));
            check("NodeCache, created", next(told), "3");
        }
    }

    private void pathChildrenCache() throws Exception {
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        try (PathChildrenCache cache = new PathChildrenCache(client, root, true)) {
            cache.getListenable().addListener((from, event) -> told.add(
                    event.getType() + (event.getData() == null ? ""
                            : " " + event.getData().getPath())));
            cache.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
            check("PathChildrenCache", cache.getCurrentData().size(), 1);
            other.create().forPath(root + "/b", bytes("new"));
            check("PathChildrenCache, added", next(told), "CHILD_ADDED " + root + "/b");
            other.setData().forPath(root + "/b", bytes("newer"));
            check("PathChildrenCache, updated", next(told), "CHILD_UPDATED " + root + "/b");
            other.delete().forPath(root + "/b");
            check("PathChildrenCache, removed", next(told), "CHILD_REMOVED " + root + "/b");
        }
    }

    private void treeCache() throws Exception {
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        CountDownLatch ready = new CountDownLatch(1);
        try (TreeCache cache = new TreeCache(client, root)) {
            cache.getListenable().addListener((from, event) -> {
                if (ready.getCount() == 0) {
                    told.add(event.getType() + " " + event.getData().getPath());
                } else if (event.getType().name().equals("INITIALIZED")) {
                    ready.countDown();
                }
            });
            cache.start();
            check("TreeCache", ready.await(Steps.PATIENCE, TimeUnit.SECONDS), true);
            check("TreeCache, children", cache.getCurrentChildren(root).keySet(), Set.of("a"));
            other.create().forPath(root + "/a/deep", bytes("d"));
            check("TreeCache, added", next(told), "NODE_ADDED " + root + "/a/deep");
            other.setData().forPath(root + "/a/deep", bytes("e"));
            check("TreeCache, updated", next(told), "NODE_UPDATED " + root + "/a/deep");
            check("TreeCache, data", text(cache.getCurrentData(root + "/a/deep").getData()), "e");
            other.delete().forPath(root + "/a/deep");
            check("TreeCache, removed", next(told), "NODE_REMOVED " + root + "/a/deep");
        }
    }

    private void curatorCache() throws Exception {
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        CountDownLatch ready = new CountDownLatch(1);
        try (CuratorCache cache = CuratorCache.build(client, root)) {
            cache.listenable().addListener(CuratorCacheListener.builder()
                    .forAll((type, old, data) -> told.add(
                            type + " " + (data == null ? old : data).getPath()))
                    .afterInitialized().build());
            cache.listenable().addListener(CuratorCacheListener.builder()
                    .forInitialized(ready::countDown).build());
            cache.start();
            check("CuratorCache", ready.await(Steps.PATIENCE, TimeUnit.SECONDS), true);
            Set<String> paths = new TreeSet<>();
            cache.stream().forEach(data -> paths.add(data.getPath()));
            check("CuratorCache, paths", paths, Set.of(root, root + "/a"));
            other.create().forPath(root + "/b", bytes("new"));
            check("CuratorCache, created", next(told), "NODE_CREATED " + root + "/b");
            other.setData().forPath(root + "/b", bytes("newer"));
            check("CuratorCache, changed", next(told), "NODE_CHANGED " + root + "/b");
            until(() -> text(cache.get(root + "/b").get().getData()).equals("newer"));
            other.delete().forPath(root + "/b");
            check("CuratorCache, deleted", next(told), "NODE_DELETED " + root + "/b");
        }
    }

    private void persistentWatcher() throws Exception {
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        CountDownLatch ready = new CountDownLatch(1);
        try (PersistentWatcher watcher = new PersistentWatcher(client, root, true)) {
            watcher.getListenable().addListener(
                    event -> told.add(event.getType() + " " + event.getPath()));
            watcher.getResetListenable().addListener(ready::countDown);
            watcher.start();
            check("PersistentWatcher", ready.await(Steps.PATIENCE, TimeUnit.SECONDS), true);
            change();
            check("PersistentWatcher, created", next(told), "NodeCreated " + root + "/b");
            check("PersistentWatcher, changed", next(told), "NodeDataChanged " + root + "/b");
            check("PersistentWatcher, deleted", next(told), "NodeDeleted " + root + "/b");
        }
    }
}
