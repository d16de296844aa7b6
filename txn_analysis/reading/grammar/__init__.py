"""The lines that Kafka's tools print, and readers that are made of their forms."""
