import { z } from 'zod'
import type { ErrorCode } from '../model/error-codes.ts'
import { type CommandName, commandNames, commandRow, type hubCommands } from '../model/hub-commands.ts'
import { Location } from '../model/location.ts'
import { valuesIn } from '../model/named-enum.ts'
import { CommandId, DurationMs, HubId, Id } from './fields.ts'

/** Routes that send a command to a hub (O §4.6), made from the command's row in `model/hub-commands.ts`. */

const StatusCode = z.literal([200, 202]).meta({
  id: 'ControlStatusCode',
  description: valuesIn('Progress of the command.', {
    200: 'executed.',
    202: 'accepted for delivery; the hub continues.',
  }),
})

/** O §4.6, standard response. */
export const controlResult = <T extends z.ZodType>(data: T) =>
  z.object({
    status: z.literal('ok').describe('Always `ok`.'),
    result: z
      .object({
        success: z.boolean().describe('True if the hub executed the command, or accepted it (202).'),
        status_code: StatusCode,
        response_data: data.describe('Data of the command.'),
      })
      .describe('Result of the command.'),
  })

export const controlExample = (response_data: unknown, status_code: 200 | 202 = 200) => ({
  response: { status: 'ok', result: { success: true, status_code, response_data } },
})

export const control = <
  const Name extends string,
  Q extends z.ZodObject,
  T extends z.ZodType,
  const E extends readonly ErrorCode[],
>(
  name: Name,
  query: Q,
  data: T,
  errors: E,
  texts: { summary: string; description: string; example: unknown },
) =>
  ({
    at: `POST /owners/controls/${name}`,
    query,
    response: controlResult(data),
    errors,
    idempotent: true,
    summary: texts.summary,
    description: texts.description,
    examples: controlExample(texts.example),
  }) as const

type Table = typeof hubCommands
/** Commands whose result is the answer of a route. */
export type AnsweringCommand = {
  [N in CommandName]: Table[N]['result'] extends { id: string } ? N : never
}[CommandName]
/** Commands whose route follows from their row alone. */
export type RoutedCommand = {
  [N in AnsweringCommand]: Table[N] extends { route: object } ? N : never
}[AnsweringCommand]

type Parameters<N extends CommandName> = Table[N]['parameters']
type Query<N extends CommandName> = z.ZodObject<
  { [K in Exclude<keyof Parameters<N>, 'location'>]: K extends 'fridge' ? typeof Id : Parameters<N>[K] } & {
    hub: typeof HubId
  } & ('location' extends keyof Parameters<N> ? typeof Location.shape : unknown)
>
type Shape<N extends AnsweringCommand> = Table[N]['result']['shape'] extends infer S extends z.ZodRawShape
  ? S
  : never
export type CommandAnswer<N extends AnsweringCommand> = z.ZodObject<
  { command_id: typeof CommandId; duration_ms: typeof DurationMs } & Shape<N>
>

const answers = new Map<string, z.ZodObject>()

/** The answer of a command's route: the command's id, its result, and how long it took. */
export function commandAnswer<N extends AnsweringCommand>(name: N): CommandAnswer<N> {
  const { id = name, description, shape } = commandRow(name).result!
  const answer =
    answers.get(id) ??
    z.object({ command_id: CommandId, ...shape, duration_ms: DurationMs }).meta({ id, description })
  answers.set(id, answer)
  return answer as CommandAnswer<N>
}

/** The query of a command's route. The hub judges the number of a fridge; a place is three fields. */
export function commandQuery<N extends CommandName>(name: N): Query<N> {
  const { location, fridge, ...others } = commandRow(name).parameters
  return z.object({
    ...(location && Location.shape),
    ...(fridge && { fridge: Id.describe('Number of the fridge.') }),
    ...others,
    hub: HubId,
  }) as unknown as Query<N>
}

export const neverQueued =
  'If the hub is offline, the answer is `hardware_error` at once (502, `details.reason` `offline`). If the hub does not answer in time, it is 504 with `details.command_id`, and the outcome is unknown. Nothing is queued.'
const movesAgain =
  'Each call moves the hardware again: after 504, check the hub before you call again, or repeat the call with its `Idempotency-Key`.'

export function commandExample(name: CommandName) {
  const { duration_ms = 1204, ...result } = commandRow(name).example ?? {}
  return { command_id: '01990000-0000-7000-8000-000000000001', ...result, duration_ms }
}

/** The errors of a command's route. The first one answers for a device that the hub does not have. */
export function commandErrors(name: CommandName): ErrorCode[] {
  const { bin, fridge, location } = commandRow(name).parameters
  return [
    ...(location ? (['invalid_location'] as const) : []),
    ...(bin ? (['bin_not_found'] as const) : []),
    ...(fridge ? (['fridge_not_found'] as const) : []),
    'hardware_error',
  ]
}

/** A command's sentences for its route. `note`: in place of the row's note. */
export function commandTexts(name: CommandName, note = commandRow(name).route?.note) {
  const { summary, isRepeatable } = commandRow(name)
  const sentences = [neverQueued, ...(isRepeatable ? [] : [movesAgain]), note ?? []].flat()
  return { summary, description: sentences.join(' '), example: commandExample(name) }
}

type CommandRoutes = {
  [N in RoutedCommand as `owner.controls.${N}`]: ReturnType<
    typeof control<N, Query<N>, CommandAnswer<N>, readonly ErrorCode[]>
  >
}

export const routedCommands = commandNames.filter(
  (name) => commandRow(name).route !== undefined,
) as RoutedCommand[]

const badPlace = {
  'query.cabinet': 'invalid_location',
  'query.shelf': 'invalid_location',
  'query.row': 'invalid_location',
} as const

export const commandRoutes = Object.fromEntries(
  routedCommands.map((name) => [
    `owner.controls.${name}`,
    {
      ...control(name, commandQuery(name), commandAnswer(name), commandErrors(name), commandTexts(name)),
      ...('location' in commandRow(name).parameters && { badValues: badPlace }),
    },
  ]),
) as unknown as CommandRoutes
