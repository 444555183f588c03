package latchkey.peer;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.stream.Stream;

/**
 * Tells when those who must not be inside at once are; see tests/interop/section.hpp, whose rules
 * these are.
 */
final class Section {
    private final Path folder;
    private final String who;
    private final String kind;
    private final int max;
    private Path mark;

    Section(Path folder, String who, Wish wish) {
        this.folder = folder;
        this.who = who;
        this.kind = wish.kind.equals("mutex") ? "write" : wish.kind;
        this.max = kind.equals("semaphore") ? wish.number(0) : 1;
    }

    void enter(String node) throws IOException {
        mark = folder.resolve(kind + "-" + who);
        Files.createFile(mark);
        note("enter", node);
        try (Stream<Path> list = Files.list(folder)) {
            if (conflicts(list.map(path -> path.getFileName().toString()))) {
                note("CONFLICT", node);
            }
        }
    }

    void leave(String node) throws IOException {
        note("leave", node);
        Files.delete(mark);
    }

    private boolean conflicts(Stream<String> marks) {
        switch (kind) {
            case "read":
                return marks.anyMatch(name -> name.startsWith("write-"));
            case "write":
                return marks.filter(name -> !name.equals("log")).count() > 1;
            default:
                return marks.filter(name -> name.startsWith(kind + "-")).count() > max;
        }
    }

    private void note(String what, String node) throws IOException {
        String line = what + " " + who + " " + node + " " + System.nanoTime() + "\n";
        Files.write(
                folder.resolve("log"),
                line.getBytes(StandardCharsets.UTF_8),
                StandardOpenOption.CREATE,
                StandardOpenOption.APPEND);
    }
}
