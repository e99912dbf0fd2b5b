import { z } from 'zod'

/**
 * The GPIO socket: the messages between a simulated hub's chip and its user, one JSON object in each line, over a Unix
 * or TCP socket. Specified in `simulator/mounts/gpio/SPEC.md`. Levels are logical: the chip's side inverts inverted
 * lines.
 *
 * 1  first version
 */
export const GPIO_PROTOCOL_VERSION = 1

/** A longer line ends the connection. In characters. */
export const GPIO_MAX_LINE = 65_536
/** The chip sends a message at least this often. A user that receives none for `GPIO_SILENT_MS` closes the socket. */
export const GPIO_ALIVE_MS = 1000
export const GPIO_SILENT_MS = 4000

const LevelSchema = z.union([z.literal(0), z.literal(1)])

/** Chip → user, first on every connection: every line with its present level. */
const LinesMessage = z.object({
  type: z.literal('lines'),
  protocol: z.literal(GPIO_PROTOCOL_VERSION),
  lines: z.array(
    z.object({
      name: z.string(),
      direction: z.enum(['in', 'out']),
      level: LevelSchema,
      /** A user has driven this output since the chip had power. Electrically, other outputs are still inputs. */
      driven: z.boolean(),
    }),
  ),
})
export type GpioLineState = z.infer<typeof LinesMessage>['lines'][number]

/** Chip → user. */
export const GpioChipMessage = z.discriminatedUnion('type', [
  LinesMessage,
  /** Sent after each change, and once for each `drive`, even without a change. */
  z.object({ type: z.literal('level'), name: z.string(), level: LevelSchema }),
  z.object({
    type: z.literal('refused'),
    name: z.string(),
    reason: z.enum(['unknown_line', 'not_an_output']),
  }),
  z.object({ type: z.literal('alive') }),
])
export type GpioChipMessage = z.infer<typeof GpioChipMessage>

/** User → chip. */
export const GpioUserMessage = z.object({
  type: z.literal('drive'),
  name: z.string(),
  level: LevelSchema,
})
export type GpioUserMessage = z.infer<typeof GpioUserMessage>

/** Parses a line with `schema`; `undefined` if the line is not JSON or does not fit. */
export function parseGpioMessage<T>(schema: z.ZodType<T>, line: string): T | undefined {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return undefined
  }
  return schema.safeParse(value).data
}
