//! The probe for people.

use std::fmt;

use bytesize::ByteSize;

use super::{DiskProbe, Probe};

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "fast disk{}", self.fast)?;
        write!(f, "slow disk{}", self.slow)?;
        for (number, disk) in (2..).zip(&self.slower) {
            write!(f, "\nslow disk {number}{disk}")?;
        }
        Ok(())
    }
}

impl fmt::Display for DiskProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(why) = &self.refused {
            return write!(f, "\n  not measured: {why}");
        }
        if self.emulated {
            write!(f, ", emulated")?;
        }
        let kinds = [
            ("4 KiB", self.random_read_4k),
            ("16 KiB", self.random_read_16k),
        ];
        for (size, reads) in kinds {
            if let Some(reads) = reads {
                write!(
                    f,
                    "\n  random reads of {size:<6} {:.0}/s, {:.0} us each, 16 threads",
                    reads.iops, reads.mean_us
                )?;
            }
        }
        let speeds = [
            ("reads", self.sequential_read_bytes_s),
            ("writes", self.sequential_write_bytes_s),
        ];
        for (what, speed) in speeds {
            if let Some(speed) = speed {
                write!(f, "\n  sequential {what:<11} {}/s", ByteSize(speed as u64))?;
            }
        }
        Ok(())
    }
}
