"""The shell: settings, URLs, schedule, launcher. The only place that knows every room."""
