"""Pure: one head: its layout, channels, pending tasks and waiting, and composing its successor."""
