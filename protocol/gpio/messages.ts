import { z } from 'zod'

/**
 * The GPIO socket: what a simulated hub's chip and its user say to one another, one JSON object a line, over a Unix or
 * TCP socket. `simulator/mounts/gpio/SPEC.md` describes it whole. Levels are logical: an inverted line is inverted by its owner.
 *
 * 1  first version
 */
export const GPIO_PROTOCOL_VERSION = 1

/** A longer line ends the connection. Characters. */
export const GPIO_MAX_LINE = 65_536
/** The chip says something at least this often; a user that hears nothing for `GPIO_SILENT_MS` gives the socket up. */
export const GPIO_ALIVE_MS = 1000
export const GPIO_SILENT_MS = 4000

const LevelSchema = z.union([z.literal(0), z.literal(1)])

/** Chip → user, first on every connection: every line as it is now. */
const LinesMessage = z.object({
  type: z.literal('lines'),
  protocol: z.literal(GPIO_PROTOCOL_VERSION),
  lines: z.array(
    z.object({
      name: z.string(),
      direction: z.enum(['in', 'out']),
      level: LevelSchema,
      /** An output that some user has driven since the chip had power; others are still inputs electrically. */
      driven: z.boolean(),
    }),
  ),
})
export type GpioLineState = z.infer<typeof LinesMessage>['lines'][number]

/** Chip → user. */
export const GpioChipMessage = z.discriminatedUnion('type', [
  LinesMessage,
  /** After each change, and once for each `drive`, whether or not it changed anything. */
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

/** Parses a line with `schema`; `undefined` where it is not JSON or not such a message. */
export function parseGpioMessage<T>(schema: z.ZodType<T>, line: string): T | undefined {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return undefined
  }
  return schema.safeParse(value).data
}
