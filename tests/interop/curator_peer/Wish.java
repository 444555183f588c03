package latchkey.peer;

/** What to take: "KIND PATH [NUMBER]...". */
final class Wish {
    final String kind;
    final String path;
    private final String[] words;
    private final int rest;

    private Wish(String[] words, int from) {
        this.kind = words[from];
        this.path = words[from + 1];
        this.words = words;
        this.rest = from + 2;
    }

    static Wish of(String[] words, int from) {
        return new Wish(words, from);
    }

    String text(int index) {
        return words[rest + index];
    }

    int number(int index) {
        return Integer.parseInt(text(index));
    }
}
