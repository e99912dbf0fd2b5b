import { readFileSync, statfsSync } from 'node:fs'
import type { BoardVitals } from '../../protocol/model/vitals.ts'

/** Temperature of the processor in thousandths of a degree, on boards that have a sensor. */
const THERMAL = '/sys/class/thermal/thermal_zone0/temp'

/** The figures of the board that `node` and the system know. `folder`: of the journal. */
export const boardVitals = (folder: string): BoardVitals => ({
  memory_bytes: process.memoryUsage.rss(),
  disk_free_bytes: known(() => {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  }),
  board_celsius: known(() => Math.round(Number(readFileSync(THERMAL, 'utf8')) / 100) / 10),
})

function known(read: () => number): number | null {
  try {
    const value = read()
    return Number.isFinite(value) ? value : null
  } catch {
    return null
  }
}
