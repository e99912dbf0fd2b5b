import { readFileSync } from 'node:fs'

/** Memory of a process that is in RAM, in MB (10⁶ bytes): `VmRSS`. */
export function residentMb(pid: number): number {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8')
  return (Number(/^VmRSS:\s+(\d+) kB$/m.exec(text)![1]) * 1024) / 1e6
}

/** What a process has caused to be written to the disk so far, in bytes: `write_bytes` of `/proc/<pid>/io`. */
export function writtenBytes(pid: number | 'self'): number {
  const text = readFileSync(`/proc/${pid}/io`, 'utf8')
  return Number(/^write_bytes: (\d+)$/m.exec(text)![1])
}
