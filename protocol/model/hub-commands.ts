import { z } from 'zod'
import { FridgeSide } from './hardware.ts'
import { BinHealth, DoorLock, DoorPosition, LiftPosition } from './hub-health.ts'
import { Location, locationKey } from './location.ts'
import type { Scope } from './scopes.ts'

/**
 * The commands of a hub, one row for each. The message on the wire, the hub's executor, the API's routes and handlers,
 * the hub's page, the steps of scenarios and the table in `mqtt/SPEC.md` §6 all derive from it.
 *
 * A command moves or reads something now. Desired state (`enable_bin`, `stop_orders`) is sent as an entry instead.
 */
export interface HubCommand {
  /** The action, in the imperative. */
  summary: string
  /** Callers in addition to the hub's page. `owner`: an API credential with this scope. */
  callers: { owner?: Scope; customer?: true }
  /** The parameters in their form on the wire. */
  parameters: z.ZodRawShape
  /** `CommandResult.data` of an executed command; null if there is none. */
  result: Result | null
  /** An example of that data. */
  example: Readonly<Record<string, unknown>> | null
  /** Maximum time for the answer, as a multiple of the caller's time for one motion of a door. */
  deadline: number
  /** Added to `deadline` for each of the command's `cycles`. */
  deadlinePerCycle?: number
  /** Whether a caller without an answer can send it again: a second execution changes nothing more. */
  isRepeatable: boolean
  /**
   * Present: `POST /owners/controls/<name>` sends it, with its parameters as the query. `note` is added to the route's
   * description. A route with a path, a query or an answer of its own is declared in `contract/owner-controls.ts`.
   */
  route?: { note?: string }
  /** The action in the audit log, if it differs from `controls.<name>`. */
  auditAction?: (parameters: never) => string
  /** Present: a technician can send it at the hub. */
  page?: PageAction
}

export interface PageAction {
  /** The path below `/api/` of the hub: `bins/{bin}/open`. The other parameters are in the body. */
  path: string
  button: string
  /** False if the command cannot be undone: the technician must hold the button. */
  isSafe: boolean
  /** Defaults of optional parameters. */
  defaults?: Readonly<Record<string, unknown>>
}

/** `id`: name of the route's answer in the API's description. */
interface Result {
  id?: string
  description?: string
  shape: z.ZodRawShape
}

const bin = z.int().min(1).max(4).describe('Number of the bin, 1 to 4.')
const fridge = z.int().min(1).max(8).describe('Number of the fridge.')
/** The order's UUID. */
const order_id = z.uuid()
const duration_ms = z.int().describe('Duration in milliseconds.')

/** The units of a line that are still wanted. Other units whose dispense has not started stay on the shelf. */
export const WantedLine = z.object({ line_id: z.int(), wanted: z.int().min(0) })
export type WantedLine = z.infer<typeof WantedLine>

const doorMoved = {
  id: 'BinDoorMoved',
  description: 'Result of a motion of a bin’s door.',
  shape: { door: DoorPosition.describe('Position of the door after the command.'), duration_ms },
} as const
const liftMoved = {
  id: 'BinLiftMoved',
  description: 'Result of a motion of a bin’s lift.',
  shape: { lift: LiftPosition.describe('Position of the lift after the command.'), duration_ms },
} as const
const lockMoved = {
  id: 'DoorLockMoved',
  description: 'Result of a command for a door’s lock.',
  shape: { door: DoorLock.describe('State of the door after the command.') },
} as const
const reconnected = {
  id: 'ControllerReconnected',
  description: 'Result of a reconnection of a controller.',
  shape: {
    connected: z.literal(true).describe('Always true: the controller answers again.'),
    duration_ms,
  },
} as const

/** A lift takes twice as long as a door. */
const LIFT = 2
const moves = { callers: { owner: 'controls:write' }, deadline: 1, isRepeatable: true } as const
const reconnects = {
  ...moves,
  result: reconnected,
  example: { connected: true, duration_ms: 212 },
  route: { note: 'The answer comes when the controller answers again.' },
} as const
const blocks = {
  ...moves,
  result: {
    id: 'RowBlock',
    description: 'Result of a command that blocks or unblocks a row.',
    shape: { blocked: z.boolean().describe('Whether the row is blocked after the command.') },
  },
} as const
const withoutResult = { result: null, example: null, deadline: 1, isRepeatable: true } as const

export const hubCommands = {
  open_bin: {
    ...moves,
    summary: "Open a bin's door",
    parameters: { bin },
    result: doorMoved,
    example: { door: 'open', duration_ms: 1204 },
    route: {},
    page: { path: 'bins/{bin}/open', button: 'Open', isSafe: true },
  },
  close_bin: {
    ...moves,
    summary: "Close a bin's door",
    parameters: { bin },
    result: doorMoved,
    example: { door: 'closed', duration_ms: 1204 },
    route: {},
    page: { path: 'bins/{bin}/close', button: 'Close', isSafe: true },
  },
  raise_bin: {
    ...moves,
    summary: "Raise a bin's lift",
    parameters: { bin },
    result: liftMoved,
    example: { lift: 'up', duration_ms: 2503 },
    deadline: LIFT,
    route: {},
    page: { path: 'bins/{bin}/raise', button: 'Raise', isSafe: true },
  },
  lower_bin: {
    ...moves,
    summary: "Lower a bin's lift",
    parameters: { bin },
    result: liftMoved,
    example: { lift: 'down', duration_ms: 2503 },
    deadline: LIFT,
    route: {},
    page: { path: 'bins/{bin}/lower', button: 'Lower', isSafe: true },
  },
  get_bin_status: {
    summary: "Read a bin's status",
    callers: { owner: 'controls:read' },
    parameters: { bin },
    result: { shape: BinHealth.shape },
    example: {
      bin_number: 1,
      capacity: 6,
      enabled: true,
      status: 'healthy',
      door: 'closed',
      lift: 'down',
      occupied: false,
      fault_code: null,
      order_id: null,
    },
    deadline: 1,
    isRepeatable: true,
  },
  open_delivery: {
    summary: "Open bins of a customer's READY or COLLECTING order",
    callers: { customer: true },
    parameters: { order_id, bins: z.array(bin).min(1) },
    result: {
      shape: {
        results: z.array(z.object({ bin_number: bin, success: z.boolean(), error: z.string().nullable() })),
      },
    },
    example: { results: [{ bin_number: 1, success: true, error: null }] },
    deadline: 1,
    isRepeatable: true,
  },
  cancel_order: {
    ...withoutResult,
    summary: 'Cancel an order that the hub has not started',
    callers: { owner: 'orders:write', customer: true },
    parameters: { order_id },
  },
  reduce_order: {
    ...withoutResult,
    summary: 'Leave units of an order on the shelf that are no longer wanted',
    callers: { owner: 'orders:write' },
    parameters: { order_id, lines: z.array(WantedLine).min(1) },
  },
  settle_operation: {
    ...withoutResult,
    summary: 'Report whether an operation of unknown outcome happened (I1)',
    callers: { owner: 'controls:write' },
    parameters: { operation_id: z.uuid(), happened: z.boolean() },
  },
  cycle_bin: {
    ...moves,
    summary: "Open and close a bin's door several times",
    parameters: {
      bin,
      cycles: z.int().min(1).max(10).describe('Number of times that the door opens and closes, 1 to 10.'),
    },
    result: {
      shape: {
        door: DoorPosition,
        cycles_completed: z.int().describe('Number of completed cycles.'),
        duration_ms,
      },
    },
    example: { door: 'closed', cycles_completed: 3, duration_ms: 7180 },
    deadlinePerCycle: 0.4,
    isRepeatable: false,
    page: {
      path: 'bins/{bin}/cycle',
      button: 'Open and close 3 times',
      isSafe: true,
      defaults: { cycles: 3 },
    },
  },
  open_fridge: {
    ...moves,
    summary: 'Unlock a door of a fridge; it locks again automatically',
    parameters: { fridge, side: FridgeSide },
    result: lockMoved,
    example: { door: 'unlocked' },
    auditAction: ({ side }: { side: FridgeSide }) => `controls.open_fridge_${side}`,
  },
  close_fridge: {
    ...moves,
    summary: "Lock all of a fridge's doors",
    parameters: { fridge },
    result: lockMoved,
    example: { door: 'locked' },
    route: { note: 'While one of them is open, the answer is `hardware_error` with reason `interlock`.' },
    page: { path: 'fridges/{fridge}/lock', button: 'Lock all its doors', isSafe: true },
  },
  open_main_door: {
    summary: 'Unlock the main door; it locks again automatically',
    callers: { owner: 'hubs:write' },
    parameters: {},
    result: lockMoved,
    example: { door: 'unlocked' },
    deadline: 1,
    isRepeatable: true,
    auditAction: () => 'hubs.request_door_open',
  },
  reconnect_bin: {
    ...reconnects,
    summary: "Close the serial line of a bin's controller and open it again",
    parameters: { bin },
    page: { path: 'bins/{bin}/reconnect', button: 'Reconnect', isSafe: true },
  },
  reconnect_fridge: {
    ...reconnects,
    summary: "Close the serial line of a fridge's controller and open it again",
    parameters: { fridge },
    page: { path: 'fridges/{fridge}/reconnect', button: 'Reconnect', isSafe: true },
  },
  test_dispense: {
    ...moves,
    summary: 'Turn a row once over a bin, for no order',
    parameters: {
      location: Location,
      bin: bin.optional().describe('Number of the bin. If it is left out: a free one, chosen by the hub.'),
      onto: z
        .boolean()
        .optional()
        .describe(
          'True if the unit may fall onto units of earlier tests in `bin`: the caller has seen that there is room. If it is left out: false.',
        ),
    },
    result: {
      id: 'RowTested',
      description: 'Result of a test of a row.',
      shape: { drops: z.int().describe('Number of units that were seen to fall.'), bin, duration_ms },
    },
    example: { drops: 1, bin: 2, duration_ms: 2840 },
    deadline: 2,
    isRepeatable: false,
    route: {
      note: 'A technician tests a row, for example after a jam. The row turns as for an order: the fallen unit leaves the stock, and a person must take it out of the bin. While the hub has an order, while a door of the fridge before the cabinet is not locked, and while it is unknown whether a unit of the row fell, the answer is `hardware_error` with reason `interlock`.',
    },
    page: { path: 'rows/test', button: 'Turn it once', isSafe: false },
  },
  block_row: {
    ...blocks,
    example: { blocked: true },
    summary: 'Block a row: nothing is sold from it',
    parameters: { location: Location },
    route: {
      note: 'The row stays blocked, also after counts and restarts of the hub, until `unblock_row`. Units that are reserved for paid orders come from other rows, or are refunded.',
    },
  },
  unblock_row: {
    ...blocks,
    example: { blocked: false },
    summary: 'Unblock a row',
    parameters: { location: Location },
    route: {
      note: 'Ends the block of a person and of failed dispenses. A row with a dispense of unknown outcome stays blocked until it is counted or the outcome is settled.',
    },
  },
} as const satisfies Record<string, HubCommand>

type Table = typeof hubCommands
export type CommandName = keyof Table
type ParametersOf<Name extends CommandName> = z.output<z.ZodObject<Table[Name]['parameters']>>
type BodyOf<Name extends CommandName> = { name: Name } & (keyof Table[Name]['parameters'] extends never
  ? unknown
  : ParametersOf<Name>)
/** A command with its parameters: `{ name: 'open_bin', bin: 2 }`. */
export type CommandBody<Name extends CommandName = CommandName> = { [N in Name]: BodyOf<N> }[Name]

export const commandNames = Object.keys(hubCommands) as CommandName[]
export const commandRow = (name: CommandName): HubCommand => hubCommands[name]

/** Commands of a technician at the hub. */
export const pageCommands = commandNames.flatMap((name) => commandRow(name).page ?? [])

/** The request of a command at the hub's page, below `/api/`: its path, and the parameters that are not part of the path. */
export function pageRequest({ name, ...given }: CommandBody): {
  path: string
  body: Record<string, unknown>
} {
  const { path } = commandRow(name).page!
  const parameters: Record<string, unknown> = given
  const inBody = Object.entries(parameters).filter(([key]) => !path.includes(`{${key}}`))
  return {
    path: path.replace(/\{(\w+)\}/g, (_, key: string) => String(parameters[key])),
    body: Object.fromEntries(inBody),
  }
}

const bodies = commandNames.map((name) =>
  z.object({ name: z.literal(name), ...commandRow(name).parameters }),
) as unknown as [z.ZodObject<{ name: z.ZodLiteral<CommandName> }>]
export const CommandBody = z.discriminatedUnion('name', bodies) as unknown as z.ZodType<CommandBody>

/** Maximum time for the answer, as a multiple of the caller's time for one motion of a door. */
export function deadlineOf(body: CommandBody): number {
  const { deadline, deadlinePerCycle = 0 } = commandRow(body.name)
  return deadline + deadlinePerCycle * ('cycles' in body ? body.cycles : 0)
}

/** The action in the audit log: the route's name. */
export const auditActionOf = (body: CommandBody): string =>
  commandRow(body.name).auditAction?.(body as never) ?? `controls.${body.name}`

/** The device, order or operation of a command: `bin-2`, `order-<uuid>`. */
export function objectOf(body: CommandBody): string {
  if ('location' in body) return `row-${locationKey(body.location)}`
  if ('bin' in body) return `bin-${body.bin}`
  if ('fridge' in body) return `fridge-${body.fridge}`
  if ('operation_id' in body) return `operation-${body.operation_id}`
  if ('order_id' in body) return `order-${body.order_id}`
  return (body.name satisfies 'open_main_door') && 'main-door'
}
