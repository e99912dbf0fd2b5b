import { z } from 'zod'

/**
 * The local interface of a supervisor that is not systemd (the demo's): HTTP on a Unix socket. `GET /programs/NAME`,
 * `POST /programs/NAME/stop` and `…/start`; JSON both ways.
 */
export const StopRequest = z.object({
  /** SIGKILL follows SIGTERM after this long. */
  kill_after_ms: z.int().min(0).max(600_000),
})
export const StartRequest = z.object({
  /** Timeout until the program must report that it is ready. */
  ready_within_ms: z.int().min(0).max(600_000),
})

export const ProgramState = z.object({ state: z.enum(['running', 'stopped']), pid: z.int().nullable() })
export type ProgramState = z.infer<typeof ProgramState>

/** The outcome of a stop or a start. `exit_code` is 0 if the program is in the requested state. */
export const ActionOutcome = z.object({ exit_code: z.int(), output: z.string() })
export type ActionOutcome = z.infer<typeof ActionOutcome>
