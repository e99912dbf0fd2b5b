import { z } from 'zod'

const bytes = z.int().min(0)
const count = z.int().min(0)

/** Figures of a hub's board and service, from its heartbeats. */
export const Vitals = z.object({
  memory_bytes: bytes.describe('Resident memory of the hub’s service in bytes.'),
  disk_free_bytes: bytes
    .nullable()
    .describe('Free space on the disk of the journal in bytes; null if unknown.'),
  board_celsius: z.number().nullable().describe('Temperature of the board in °C; null without a sensor.'),
  journal_bytes: bytes.describe('Size of the journal in bytes.'),
  link_errors: count.describe(
    'Lost connections to controllers and unreadable lines since the start of the service.',
  ),
  queue: count.describe('Entries that the cloud has not acknowledged.'),
  restarts: count.describe('Starts after a crash, a kill or a power failure, since the journal is new.'),
  clock_offset_ms: z
    .int()
    .nullable()
    .describe('Difference of the board’s clock from the cloud’s in milliseconds; null if unknown.'),
})
export type Vitals = z.infer<typeof Vitals>
/** The figures that the system knows. */
export type BoardVitals = Pick<Vitals, 'memory_bytes' | 'disk_free_bytes' | 'board_celsius'>

/** The latest start after a life of the service that did not end normally. */
export const LastCrash = z.object({
  /** Cloud time of that start, milliseconds. */
  at: z.number(),
  /** The error that ended the former process; null if it was killed or lost power. */
  error: z.string().max(1000).nullable(),
})
export type LastCrash = z.infer<typeof LastCrash>

/** Differences that are not worth a report: a part of the former value, or an absolute difference. */
const tolerances: Readonly<Record<keyof Vitals, { part?: number; by?: number }>> = {
  memory_bytes: { part: 0.1 },
  disk_free_bytes: { part: 0.05 },
  board_celsius: { by: 2 },
  journal_bytes: { part: 0.1 },
  link_errors: { part: 0.1 },
  queue: { part: 0.5, by: 10 },
  restarts: {},
  clock_offset_ms: { by: 500 },
}

/** Whether a figure differs noticeably from the last report. */
export const isNoticeable = (former: Vitals, vitals: Vitals): boolean =>
  (Object.keys(tolerances) as (keyof Vitals)[]).some((name) => {
    const [before, now] = [former[name], vitals[name]]
    if (before === null || now === null) return before !== now
    const { part = 0, by = 0 } = tolerances[name]
    return Math.abs(now - before) > Math.max(by, part * Math.abs(before))
  })
