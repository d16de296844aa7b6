package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Kafka's own log code. Reads one list of requests a line, as JSON; carries each out on a log of its own, in a folder
 * that stays; answers each with one line of JSON.
 */
public final class KafkaLog {
    private KafkaLog() {
    }

    public static void main(String[] words) throws Exception {
        Path root = Path.of(words[0]);
        ObjectMapper json = new ObjectMapper();
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode told = json.readTree(line);
            StoppedClock time = new StoppedClock(told.get("now").asLong());
            CleanerParts cleaner = CleanerParts.small(time);
            Path folder = Files.createDirectories(root.resolve(told.get("name").asText()));
            out.println(json.writeValueAsString(new Story(folder, told, time, cleaner).tell()));
            out.flush();
        }
    }
}
