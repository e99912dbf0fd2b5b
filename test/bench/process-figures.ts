import { readdirSync, readFileSync } from 'node:fs'

/** Resident memory of a process in MB (10⁶ bytes): `VmRSS`. */
export function residentMb(pid: number): number {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8')
  return (Number(/^VmRSS:\s+(\d+) kB$/m.exec(text)![1]) * 1024) / 1e6
}

/** Bytes that a process has written to the disk so far: `write_bytes` of `/proc/<pid>/io`. */
export function writtenBytes(pid: number | 'self'): number {
  const text = readFileSync(`/proc/${pid}/io`, 'utf8')
  return Number(/^write_bytes: (\d+)$/m.exec(text)![1])
}

/** Processor time of a process so far, all threads together, in milliseconds: `schedstat`. */
export function processorMs(pid: number): number {
  const tasks = readdirSync(`/proc/${pid}/task`)
  const times = tasks.map((task) =>
    Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]),
  )
  return times.reduce((sum, time) => sum + time, 0) / 1e6
}
