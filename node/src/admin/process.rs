//! What the system knows of this process.
//!
//! For: memory and processor time in `INFO`.
//! Not here: what a node counts itself (`stats`).

use std::fs;

/// Figures of one moment; zero where the system does not tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessFigures {
    /// Resident memory, bytes.
    pub resident_bytes: u64,
    /// Most resident memory so far, bytes.
    pub resident_peak_bytes: u64,
    /// Memory of the machine, bytes.
    pub system_bytes: u64,
    /// Processor time in user code, seconds.
    pub user_seconds: f64,
    /// Processor time in the kernel, seconds.
    pub system_seconds: f64,
    /// Release of the kernel.
    pub kernel: String,
}

/// Asks the system. Reads files in `/proc`, so not for every request.
#[must_use]
pub fn figures() -> ProcessFigures {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let status = read("/proc/self/status");
    let (user_seconds, system_seconds) = processor_seconds(&read("/proc/self/stat")).unwrap_or_default();
    ProcessFigures {
        resident_bytes: kilobytes(&status, "VmRSS:"),
        resident_peak_bytes: kilobytes(&status, "VmHWM:"),
        system_bytes: kilobytes(&read("/proc/meminfo"), "MemTotal:"),
        user_seconds,
        system_seconds,
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
    }
}

/// The number behind a name, in bytes; the kernel writes `kB` and means 1024.
fn kilobytes(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line
        .and_then(|line| line.split_ascii_whitespace().next())
        .and_then(|number| number.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

/// User and system time of `/proc/self/stat`. The process' name may hold blanks and parentheses, so the
/// fields are counted from the last one. The unit has been 1/100 s on every Linux since 2.6.
fn processor_seconds(stat: &str) -> Option<(f64, f64)> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? / 100.0, next()? / 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory() {
        let figures = figures();
        assert!(
            figures.resident_bytes > 1 << 20 && figures.system_bytes > figures.resident_bytes,
            "{figures:?}"
        );
        assert!(!figures.kernel.is_empty());
    }

    #[test]
    fn processor_time_is_found_behind_any_name() {
        let stat = "1 (a) b) R 1 2 3 0 -1 4194304 101 0 0 0 250 50 0 0 20 0";
        assert_eq!(processor_seconds(stat), Some((2.5, 0.5)));
        assert_eq!(processor_seconds("nonsense"), None);
    }
}
