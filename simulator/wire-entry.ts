/** A line, a change of a pin or a step of a scenario, in the order of time. */
export type WireEntry = {
  n: number
  /** Milliseconds since the simulator's start, monotonic. */ at_ms: number
} & (
  | {
      kind: 'frame'
      controller: string
      direction: 'to_hub' | 'to_controller'
      line: string
      /** The lines that arrived at the other end, if they differ from the sent line. */
      arrived?: readonly string[]
      type?: string
      /** Its sender repeats it until it is answered with ACK or NAK. */
      asks?: boolean
      seq?: number
      fields?: Record<string, string | number | boolean>
      /** Why it is not a frame: `crc`, `malformed`, `too_long`, `unknown_type`, `bad_field`. */
      error?: string
    }
  | { kind: 'edge'; gpio: string; level: 0 | 1; by: 'hub' | 'world' }
  | {
      kind: 'motion'
      phase: 'began' | 'ended'
      device: string
      action: string
      operation_id?: string
      detail: object
    }
)
