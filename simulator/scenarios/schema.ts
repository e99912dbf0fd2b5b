import { z } from 'zod'
import { routedCommands } from '../../protocol/contract/command-route.ts'
import { alarmKindNames } from '../../protocol/model/alarms.ts'
import {
  type CommandBody,
  type CommandName,
  commandNames,
  commandRow,
} from '../../protocol/model/hub-commands.ts'
import { OrderStatus, type OrderStatusName } from '../../protocol/model/order-status.ts'
import { schemaProblems } from '../../protocol/model/schema-problems.ts'
import { faultTypes } from '../faults/fault-types.ts'
import { ActBody, FaultBody, LineBody, PowerBody } from '../interface/requests.ts'

/** The schema of scenarios. `README.md` in this folder explains it. */

const UNITS_MS = { ms: 1, s: 1000, min: 60_000, h: 3_600_000 } as const
const LONGEST_MS = 86_400_000

/** A duration as text, parsed to milliseconds: `300 ms`, `2.5 s`, `10 min`, `1 h`. */
export const Duration = z
  .string()
  .regex(/^\d+(\.\d+)? ?(ms|s|min|h)$/, 'must be a time such as 300 ms, 2.5 s, 10 min or 1 h')
  .transform((text) => {
    const [, count, unit] = /^([\d.]+) ?([a-z]+)$/.exec(text)!
    return Math.round(Number(count) * UNITS_MS[unit as keyof typeof UNITS_MS])
  })
  .refine((ms) => ms <= LONGEST_MS, 'must be at most 24 h')

const CustomerName = z.string().regex(/^[a-z][a-z0-9_]{0,30}$/, 'must be a name such as ann')
/** `1/2/3`: cabinet, shelf, row. */
const Place = z
  .string()
  .regex(/^\d{1,2}\/\d{1,2}\/\d{1,2}$/, 'must be cabinet/shelf/row, such as 1/2/3')
  .transform((text) => {
    const [cabinet, shelf, row] = text.split('/').map(Number) as [number, number, number]
    return { cabinet, shelf, row }
  })
export type Place = z.output<typeof Place>

const Values = z.record(z.string(), z.json())
/** The expected error code of a call; without it the call must succeed. */
const answers = { answers: z.string().min(1).max(60).optional() }
const Query = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
const Call = z
  .string()
  .regex(
    /^(GET|POST|PUT|PATCH|DELETE) \/[\w{}/.-]*$/,
    'must be a method and a path, such as POST /owners/controls/open_bin',
  )

const statusNames = Object.keys(OrderStatus) as [OrderStatusName, ...OrderStatusName[]]

/** A condition: every named part must hold. */
export const Condition = z
  .strictObject({
    /**
     * The true state of a device of the simulated hub: `bin-1`, `fridge-1`, `main`, a controller's name, or a row
     * `1/2/3`.
     */
    device: z.strictObject({ name: z.string().max(60), is: Values }).optional(),
    /** How often something has really moved since the scenario began. Without `times`: at least once. */
    motion: z
      .strictObject({
        device: z.string().max(60).optional(),
        action: z.string().max(60).optional(),
        detail: Values.optional(),
        times: z.int().min(0).max(10_000).optional(),
      })
      .optional(),
    order: z
      .strictObject({
        customer: CustomerName,
        status: z.union([z.enum(statusNames), z.array(z.enum(statusNames)).min(1)]).optional(),
        payment_status: z.string().max(40).optional(),
        /** Units in bins or taken, over all lines. */
        dropped: z.int().min(0).optional(),
        /** Refunded units. */
        refunded: z.int().min(0).optional(),
        bins: z.int().min(0).max(4).optional(),
      })
      .optional(),
    /** An alarm as the owner or the hub's page shows it. */
    alarm: z
      .strictObject({
        kind: z.enum(alarmKindNames),
        subject: z.string().max(60).optional(),
        /** `none`: no alarm is open. */
        state: z.enum(['open', 'cleared', 'none']).default('open'),
        at: z.enum(['cloud', 'hub']).default('cloud'),
      })
      .optional(),
    /** A part of `GET /owners/hubs/get_hub_health/`. */
    health: Values.optional(),
    /** A part of the hub's page state (`GET /api/state`). */
    hub: Values.optional(),
    /** A row in the cloud's stock (`GET /owners/hubs/facings`). */
    facing: z.strictObject({ row: Place, is: Values }).optional(),
    /** A part of the answer to the last call. */
    answer: Values.optional(),
  })
  .refine((condition) => Object.keys(condition).length > 0, 'must name something that is to be so')
export type Condition = z.output<typeof Condition>

/** Where a command can be sent: by the owner through the cloud, or by a technician at the hub. */
const placesOf = (name: CommandName): string[] => [
  ...((routedCommands as CommandName[]).includes(name) ? ['cloud'] : []),
  ...(commandRow(name).page ? ['hub'] : []),
]
const commands = commandNames
  .filter((name) => placesOf(name).length > 0)
  .map((name) =>
    z.strictObject({
      name: z.literal(name),
      ...commandRow(name).parameters,
      at: z.enum(placesOf(name)).default(placesOf(name)[0]!),
      ...answers,
    }),
  ) as unknown as [z.ZodObject<{ name: z.ZodLiteral<CommandName> }>]
const Command = z.discriminatedUnion('name', commands) as unknown as z.ZodType<
  {
    at: 'cloud' | 'hub'
    answers?: string
  } & CommandBody
>

const WAIT_MS = 30_000

/** The content of every kind of step. */
export const stepKinds = {
  /** An action of people's hands, as in `POST /api/hubs/{id}/act`. */
  act: ActBody,
  /** As in `POST /api/hubs/{id}/faults`. */
  fault: FaultBody,
  /** Ends the active faults of a type, or all. */
  clear: z.enum(['all', ...faultTypes]),
  power: PowerBody,
  /** Sends a line of text on a serial line. */
  line: LineBody,
  /** A customer fills a cart with products, named by their rows. */
  cart: z.strictObject({
    customer: CustomerName,
    items: z
      .array(z.strictObject({ row: Place, units: z.int().min(1).max(100) }))
      .min(1)
      .max(20),
    ...answers,
  }),
  pay: z.strictObject({
    customer: CustomerName,
    method: z.string().max(60).default('pm_card_visa'),
    ...answers,
  }),
  /** The customer at the hub requests the bins. */
  open: z.strictObject({ customer: CustomerName, ...answers }),
  /** Takes the contents of the order's open bins. */
  take: z.strictObject({ customer: CustomerName }),
  cancel: z.strictObject({ customer: CustomerName, ...answers }),
  /** A hub command with its parameters, as in the table of commands. */
  command: Command,
  /** A call of the owner's API, with the owner's key. */
  owner: z.strictObject({ call: Call, query: Query.optional(), body: Values.optional(), ...answers }),
  /** A call of the hub's own interface, below `/api`, as a technician at the hub. */
  at_hub: z.strictObject({ call: Call, body: Values.optional(), ...answers }),
  /** The hub's line to the internet. */
  network: z.enum(['away', 'back']),
  /** A program of the demo. `copy` copies the cloud's database, `restore` restores that copy. */
  program: z.discriminatedUnion('do', [
    z.strictObject({ name: z.enum(['cloud', 'edge']), do: z.enum(['stop', 'start', 'kill']) }),
    z.strictObject({ name: z.literal('cloud'), do: z.enum(['copy', 'restore']) }),
  ]),
  wait: Duration,
  wait_until: z
    .looseObject({ within: Duration.optional() })
    .transform(({ within, ...condition }, context) => {
      const parsed = Condition.safeParse(condition)
      if (parsed.success) return { condition: parsed.data, withinMs: within ?? WAIT_MS }
      for (const { path, words } of schemaProblems(parsed.error, condition))
        context.addIssue({ code: 'custom', message: words, path })
      return z.NEVER
    }),
  /** Must hold now. */
  expect: Condition,
} satisfies Record<string, z.ZodType>

export type StepKind = keyof typeof stepKinds
export const stepNames = Object.keys(stepKinds) as StepKind[]
/** A step with its parameters filled in. */
export type Step = { [K in StepKind]: { kind: K; what: z.output<(typeof stepKinds)[K]> } }[StepKind]

export const ScenarioName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,60}$/, 'must be small letters, digits and dashes')
const Parameter = z.union([z.string().max(200), z.number(), z.boolean()])
export type Parameters = Record<string, z.output<typeof Parameter>>

/** The file of a scenario; `text.ts` checks the steps. */
export const ScenarioFile = z.strictObject({
  name: ScenarioName,
  description: z.string().min(1).max(4000),
  /** Makes the random effects of faults reproducible. */
  seed: z.int().min(0).max(4_294_967_295).optional(),
  /** Settings that the programs must have; a demo that is started for the scenario gets them. */
  settings: z.record(z.string().regex(/^[A-Z][A-Z0-9_]*$/), z.union([z.string(), z.number()])).default({}),
  parameters: z.record(z.string().regex(/^[a-z][a-z0-9_]*$/), Parameter).default({}),
  steps: z.array(z.record(z.string(), z.json())).min(1).max(500),
})
export type ScenarioFile = z.output<typeof ScenarioFile>
