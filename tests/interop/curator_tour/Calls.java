package latchkey.tour;

import static latchkey.tour.Steps.bytes;
import static latchkey.tour.Steps.check;
import static latchkey.tour.Steps.next;
import static latchkey.tour.Steps.refused;
import static latchkey.tour.Steps.shape;
import static latchkey.tour.Steps.text;

import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.CuratorEvent;
import org.apache.curator.framework.api.CuratorWatcher;
import org.apache.curator.framework.api.transaction.CuratorOp;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.data.Stat;

/** The calls of the framework: nodes, ACLs, transactions, watches. */
final class Calls {
    private final CuratorFramework client;
    private final CuratorFramework other;
    private final String root;

    Calls(CuratorFramework client, CuratorFramework other, String root) {
        this.client = client;
        this.other = other;
        this.root = root;
    }

    void run() throws Exception {
        creating();
        readingAndWriting();
        deleting();
        access();
        transactions();
        watching();
        lifetimes();
        administration();
    }

    private void creating() throws Exception {
        Stat stat = new Stat();
        client.create().creatingParentsIfNeeded().forPath(root + "/a/b/c");
        check("create", client.create().forPath(root + "/plain", bytes("one")), root + "/plain");
        client.create().storingStatIn(stat).forPath(root + "/stat", bytes("four"));
        check("create with its stat", shape(stat), "v0 c0 a0, 4 bytes, 0 children");
        for (CreateMode mode :
                List.of(
                        CreateMode.PERSISTENT_SEQUENTIAL,
                        CreateMode.EPHEMERAL,
                        CreateMode.EPHEMERAL_SEQUENTIAL,
                        CreateMode.CONTAINER)) {
            check(
                    "create " + mode,
                    client.create()
                            .withMode(mode)
                            .forPath(root + "/" + mode)
                            .replaceFirst(".*/", "")
                            .replaceFirst("\\d{10}$", "#"),
                    mode.isSequential() ? mode + "#" : mode.toString());
        }
        check(
                "create with protection",
                client.create()
                        .withProtection()
                        .withMode(CreateMode.EPHEMERAL_SEQUENTIAL)
                        .forPath(root + "/safe-")
                        .replaceFirst("_c_[-0-9a-f]+-safe", "_c_ID-safe"),
                root + "/_c_ID-safe-0000000007");
        check("create or set", client.create().orSetData().forPath(root + "/plain", bytes("two")),
                root + "/plain");
        client.create().idempotent().forPath(root + "/idem", bytes("i"));
        client.create().idempotent().forPath(root + "/idem", bytes("i"));
        refused("create what exists", Code.NODEEXISTS, () -> client.create().forPath(root));
        refused("create without a parent", Code.NONODE,
                () -> client.create().forPath(root + "/no/such"));
        refused("create under an ephemeral", Code.NOCHILDRENFOREPHEMERALS,
                () -> client.create().forPath(root + "/EPHEMERAL/x"));
        BlockingQueue<CuratorEvent> done = new LinkedBlockingQueue<>();
        client.create().inBackground((from, event) -> done.add(event)).forPath(root + "/later");
        CuratorEvent event = next(done);
        check("create in the background",
                event.getType() + " " + event.getResultCode() + " " + event.getPath(),
                "CREATE 0 " + root + "/later");
    }

    private void readingAndWriting() throws Exception {
        Stat stat = new Stat();
        check("checkExists", shape(client.checkExists().forPath(root + "/plain")),
                "v1 c0 a0, 3 bytes, 0 children, written");
        check("checkExists of nothing", client.checkExists().forPath(root + "/nothing"), null);
        check("getData", text(client.getData().storingStatIn(stat).forPath(root + "/plain")),
                "two");
        check("and its stat", stat.getVersion(), 1);
        refused("getData of nothing", Code.NONODE,
                () -> client.getData().forPath(root + "/nothing"));
        check("setData", shape(client.setData().withVersion(1).forPath(root + "/plain", bytes(""))),
                "v2 c0 a0, 0 bytes, 0 children, written");
        refused("setData of an old version", Code.BADVERSION,
                () -> client.setData().withVersion(1).forPath(root + "/plain", bytes("")));
        client.setData().compressed().forPath(root + "/plain", bytes("long".repeat(100)));
        check("getData decompressed",
                client.getData().decompressed().forPath(root + "/plain").length, 400);
        check("getChildren", client.getChildren().storingStatIn(stat).forPath(root + "/a"),
                List.of("b"));
        check("and its stat", shape(stat), "v0 c1 a0, 0 bytes, 1 children, peopled");
        BlockingQueue<CuratorEvent> done = new LinkedBlockingQueue<>();
        client.sync().inBackground((from, event) -> done.add(event)).forPath(root);
        check("sync", next(done).getResultCode(), 0);
        check("usingNamespace",
                client.usingNamespace(root.substring(1)).getChildren().forPath("/a"), List.of("b"));
        check("getEphemerals", client.getZookeeperClient().getZooKeeper().getEphemerals(root).size(),
                3);
        check("getAllChildrenNumber",
                client.getZookeeperClient().getZooKeeper().getAllChildrenNumber(root + "/a"), 2);
        check("whoAmI", client.getZookeeperClient().getZooKeeper().whoAmI().stream()
                .map(info -> info.getAuthScheme()).sorted().collect(Collectors.toList()),
                List.of("digest", "ip"));
    }

    private void deleting() throws Exception {
        refused("delete of a parent", Code.NOTEMPTY, () -> client.delete().forPath(root + "/a"));
        refused("delete of an old version", Code.BADVERSION,
                () -> client.delete().withVersion(9).forPath(root + "/a/b/c"));
        client.delete().deletingChildrenIfNeeded().forPath(root + "/a");
        check("delete with children", client.checkExists().forPath(root + "/a"), null);
        client.delete().guaranteed().forPath(root + "/stat");
        client.delete().quietly().forPath(root + "/stat");
        client.delete().idempotent().forPath(root + "/stat");
        refused("delete of nothing", Code.NONODE, () -> client.delete().forPath(root + "/stat"));
    }

    private void access() throws Exception {
        String path = root + "/guarded";
        client.create().withACL(ZooDefs.Ids.CREATOR_ALL_ACL).forPath(path, bytes("mine"));
        check("getACL", client.getACL().forPath(path).get(0).getId().getScheme(), "digest");
        refused("others do not read", Code.NOAUTH, () -> other.getData().forPath(path));
        refused("nor write", Code.NOAUTH, () -> other.setData().forPath(path, bytes("")));
        check("setACL",
                client.setACL().withVersion(0).withACL(ZooDefs.Ids.READ_ACL_UNSAFE).forPath(path)
                        .getAversion(),
                1);
        check("others read", text(other.getData().forPath(path)), "mine");
        refused("nobody writes", Code.NOAUTH, () -> client.setData().forPath(path, bytes("")));
        refused("an ACL of a scheme that is not there", Code.INVALIDACL,
                () -> client.create().withACL(
                                List.of(new org.apache.zookeeper.data.ACL(31,
                                        new org.apache.zookeeper.data.Id("none", "x"))))
                        .forPath(root + "/bad"));
    }

    private void transactions() throws Exception {
        String path = root + "/tx";
        CuratorOp create = client.transactionOp().create().forPath(path, bytes("0"));
        CuratorOp ttl = client.transactionOp().create().withTtl(600_000)
                .withMode(CreateMode.PERSISTENT_WITH_TTL).forPath(path + "/ttl");
        CuratorOp container = client.transactionOp().create()
                .withMode(CreateMode.CONTAINER).forPath(path + "/container");
        CuratorOp set = client.transactionOp().setData().withVersion(0).forPath(path, bytes("12"));
        CuratorOp look = client.transactionOp().check().withVersion(1).forPath(path);
        CuratorOp delete = client.transactionOp().delete().forPath(path + "/ttl");
        List<CuratorTransactionResult> results =
                client.transaction().forOperations(create, ttl, container, set, look, delete);
        check("transaction", results.stream()
                .map(each -> each.getType() + " " + each.getForPath() + " " + each.getError()
                        + (each.getResultStat() == null ? "" : " " + shape(each.getResultStat())))
                .collect(Collectors.joining("; ")),
                ("CREATE PATH 0; CREATE PATH/ttl 0; CREATE PATH/container 0; "
                        + "SET_DATA PATH 0 v1 c2 a0, 2 bytes, 2 children; "
                        + "CHECK PATH 0; DELETE PATH/ttl 0").replace("PATH", path));
        try {
            client.transaction().forOperations(
                    client.transactionOp().create().forPath(path + "/one"),
                    client.transactionOp().check().withVersion(99).forPath(path),
                    client.transactionOp().delete().forPath(path));
            throw new AssertionError("a transaction that should fail");
        } catch (KeeperException e) {
            check("transaction that fails", e.code() + " " + e.getResults().stream()
                    .map(each -> ((OpResult.ErrorResult) each).getErr())
                    .collect(Collectors.toList()), "BADVERSION [0, -103, -2]");
        }
        check("leaves nothing behind", client.checkExists().forPath(path + "/one"), null);
    }

    private void watching() throws Exception {
        String path = root + "/watched";
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        CuratorWatcher watcher = event -> told.add(event.getType() + " " + event.getPath());
        client.checkExists().usingWatcher(watcher).forPath(path);
        other.create().forPath(path, bytes("1"));
        check("watch by checkExists", next(told), "NodeCreated " + path);
        client.getData().usingWatcher(watcher).forPath(path);
        other.setData().forPath(path, bytes("2"));
        check("watch by getData", next(told), "NodeDataChanged " + path);
        client.getChildren().usingWatcher(watcher).forPath(path);
        other.create().forPath(path + "/child");
        check("watch by getChildren", next(told), "NodeChildrenChanged " + path);

        Watcher lasting = event -> told.add(event.getType() + " " + event.getPath());
        client.watchers().add().withMode(AddWatchMode.PERSISTENT_RECURSIVE).usingWatcher(lasting)
                .forPath(path);
        other.create().forPath(path + "/child/deep");
        other.setData().forPath(path, bytes("3"));
        other.delete().forPath(path + "/child/deep");
        check("addWatch, recursive", List.of(next(told), next(told), next(told)),
                List.of("NodeCreated " + path + "/child/deep", "NodeDataChanged " + path,
                        "NodeDeleted " + path + "/child/deep"));
        client.watchers().remove(lasting).ofType(Watcher.WatcherType.Any).forPath(path);
        check("remove", next(told), "PersistentWatchRemoved " + path);
        client.watchers().add().withMode(AddWatchMode.PERSISTENT).usingWatcher(lasting)
                .forPath(path);
        other.delete().forPath(path + "/child");
        other.delete().forPath(path);
        other.create().forPath(path);
        check("addWatch", List.of(next(told), next(told), next(told)),
                List.of("NodeChildrenChanged " + path, "NodeDeleted " + path,
                        "NodeCreated " + path));
        client.watchers().removeAll().ofType(Watcher.WatcherType.Any).forPath(path);
        check("removeAll", next(told), "PersistentWatchRemoved " + path);
        check("and nothing else was said", told.isEmpty(), true);
    }

    private void lifetimes() throws Exception {
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        Watcher gone = event -> {
            if (event.getType() == Watcher.Event.EventType.NodeDeleted) {
                told.add(event.getPath());
            }
        };
        for (String path : List.of(root + "/brief", root + "/box")) {
            client.watchers().add().withMode(AddWatchMode.PERSISTENT).usingWatcher(gone)
                    .forPath(path);
        }
        client.create().withTtl(300).withMode(CreateMode.PERSISTENT_WITH_TTL)
                .forPath(root + "/brief");
        check("a TTL node goes", next(told), root + "/brief");
        check("a TTL node with a number",
                client.create().withTtl(600_000).withMode(CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL)
                        .forPath(root + "/tx/n-"),
                root + "/tx/n-0000000002");
        client.create().creatingParentContainersIfNeeded().forPath(root + "/box/child");
        client.delete().forPath(root + "/box/child");
        check("an empty container goes", next(told), root + "/box");
    }

    private void administration() throws Exception {
        check("getConfig", text(client.getConfig().forEnsemble()), "");
        refused("reconfig", Code.RECONFIGDISABLED,
                () -> client.reconfig().joining("server.2=localhost:1:2;3").forEnsemble());
    }
}
