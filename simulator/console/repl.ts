import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { faultKinds, type FaultType, faultTypes } from '../faults/fault-types.ts'
import type { SimulatedHub } from '../simulated-hub.ts'
import { ActBody, complaint, FaultBody, PowerBody } from './requests.ts'

/** The technician's console in a terminal. `onExit` is called when it is left. */
export function startRepl(
  hubs: ReadonlyMap<number, SimulatedHub>,
  { input, output, onExit }: { input: Readable; output: Writable; onExit: () => void },
): void {
  let [id = 0] = hubs.keys()
  const terminal = createInterface({
    input,
    output,
    completer: (line: string) => [completions.filter((one) => one.startsWith(line)), line],
  })
  const ask = (): void => {
    terminal.setPrompt(`hub ${id}> `)
    terminal.prompt()
  }
  const answer = (line: string): string => {
    const [command, wanted] = line.trim().split(/\s+/)
    if (command !== 'hub') return runCommand(hubs.get(id)!, line)
    if (wanted === undefined) return `hubs: ${[...hubs.keys()].join(', ')}`
    if (!hubs.has(Number(wanted))) return `hub ${wanted} is not simulated here`
    id = Number(wanted)
    return ''
  }
  output.write('help lists the commands\n')
  ask()
  terminal.on('line', (line) => {
    if (['exit', 'quit'].includes(line.trim())) return terminal.close()
    const text = answer(line)
    if (text) output.write(`${text}\n`)
    ask()
  })
  terminal.on('close', onExit)
}

type Values = Record<string, unknown>

interface Command {
  /** Lines of the help: how it is called, and what it does where that needs saying. */
  help: readonly (readonly [call: string, meaning?: string])[]
  run(hub: SimulatedHub, words: readonly string[], values: Values): string
}

/** The console's language: a command, its arguments, `name=value` for the rest. */
const commands: Readonly<Record<string, Command>> = {
  state: { help: [['state', 'where everything stands']], run: describe },
  rows: { help: [['rows [CABINET]', 'units on the shelves']], run: (hub, [cabinet]) => rows(hub, cabinet) },
  log: {
    help: [['log [N]', 'the last N physical acts (10)']],
    run: (hub, [count]) => log(hub, Number(count ?? 10)),
  },
  faults: { help: [['faults', 'active faults']], run: listFaults },
  fault: {
    help: [['fault types', 'every fault there is'], ['fault TYPE [TARGET] [for_ms=N] [probability=P]']],
    run: (hub, words, values) => (words[0] === 'types' ? faultTable() : raise(hub, words, values)),
  },
  clear: { help: [['clear ID|all', 'ends a fault']], run: (hub, [id]) => clear(hub, id) },
  act: {
    help: [
      ['act take_items BIN [units=N]', 'what people do'],
      ['act open_door|close_door DOOR'],
      ['act restock CABINET shelf=N row=N units=N [product_id=N]'],
      ['act press CONTROLLER', 'its reset button'],
    ],
    run: act,
  },
  power: { help: [['power off|on [CONTROLLER] [for_ms=N]']], run: power },
  hub: { help: [['hub [ID]', 'which hub the commands are for']], run: () => '' },
  help: { help: [['help, exit']], run: () => commandHelp },
}

export const commandHelp = Object.values(commands)
  .flatMap(({ help }) => help.map(([call, meaning]) => (meaning ? `${call.padEnd(31)}${meaning}` : call)))
  .join('\n')

const completions = [...Object.keys(commands), 'exit', ...faultTypes.map((type) => `fault ${type}`)]

/** Carries out one line and returns what to print. Says what is wrong instead of throwing. */
export function runCommand(hub: SimulatedHub, line: string): string {
  const [command = '', ...rest] = line.trim().split(/\s+/)
  if (command === '') return ''
  if (!Object.hasOwn(commands, command)) return `unknown command ${command}; help lists them`
  const { words, values } = argumentsOf(rest)
  return commands[command]!.run(hub, words, values)
}

function argumentsOf(rest: readonly string[]): { words: string[]; values: Values } {
  const words = rest.filter((word) => !word.includes('='))
  const pairs = rest
    .filter((word) => word.includes('='))
    .map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)] as const)
  return {
    words,
    values: Object.fromEntries(
      pairs.map(([key, text]) => [key, text !== '' && Number.isFinite(Number(text)) ? Number(text) : text]),
    ),
  }
}

function describe(hub: SimulatedHub): string {
  const state = hub.state()
  return [
    ...state.bins.map(({ bin, door, lift, units }) => `${bin}  door ${door}, lift ${lift}, ${units} units`),
    ...state.fridges.map(({ fridge, celsius }) => `${fridge}  ${celsius.toFixed(2)} °C`),
    ...state.doors.map(
      ({ door, open, locked }) => `${door}  ${open ? 'open' : 'closed'}, ${locked ? 'locked' : 'unlocked'}`,
    ),
    ...state.controllers.map(
      ({ controller, powered, connected, port }) =>
        `${controller}  ${powered ? 'on' : 'off'}, ${connected ? 'connected' : 'no hub'}, ${port}`,
    ),
    `${state.last_actuation} physical acts, ${state.faults.length} faults`,
  ].join('\n')
}

function rows(hub: SimulatedHub, cabinet?: string): string {
  const wanted = hub
    .state()
    .rows.filter((row) => cabinet === undefined || `${row.cabinet}` === cabinet.replace('cabinet-', ''))
  const shelves = new Map<string, string[]>()
  for (const row of wanted) {
    const key = `cabinet-${row.cabinet} shelf ${row.shelf}`
    shelves.set(key, [...(shelves.get(key) ?? []), `${row.units}/${row.depth}`])
  }
  return [...shelves].map(([key, units]) => `${key}  ${units.join('  ')}`).join('\n') || 'no such cabinet'
}

function log(hub: SimulatedHub, count: number): string {
  if (!Number.isInteger(count) || count < 1) return 'log needs a whole number greater than 0'
  const lines = hub
    .actuations()
    .slice(-count)
    .map(({ n, at, device, action, operation_id, detail }) =>
      [n, at, device, action, operation_id ?? '-', JSON.stringify(detail)].join('  '),
    )
  return lines.join('\n') || 'nothing has happened yet'
}

function listFaults(hub: SimulatedHub): string {
  const lines = hub.faults
    .active()
    .map(
      ({ id, type, target, remaining_ms, probability }) =>
        `${id}  ${type}  ${target ?? 'all'}  p=${probability}  ${remaining_ms === null ? 'until cleared' : `${remaining_ms} ms left`}`,
    )
  return lines.join('\n') || 'no faults'
}

function faultTable(): string {
  return Object.entries(faultKinds)
    .map(([type, { description, targets }]) => `${type}  [${targets.join(', ')}]  ${description}`)
    .join('\n')
}

function raise(hub: SimulatedHub, [type, target]: readonly string[], values: Values): string {
  if (type === undefined || !Object.hasOwn(faultKinds, type))
    return type === undefined ? 'fault needs a type; fault types lists them' : `there is no fault ${type}`
  const parsed = FaultBody.safeParse({ type: type as FaultType, target, ...values })
  if (!parsed.success) return complaint(parsed.error)
  try {
    const fault = hub.faults.raise(parsed.data)
    return `${fault.id}  ${faultKinds[parsed.data.type].description}`
  } catch (error) {
    if (error instanceof RangeError) return error.message
    throw error
  }
}

function clear(hub: SimulatedHub, id: string | undefined): string {
  if (id === undefined) return 'clear needs the id of a fault, or all'
  if (id !== 'all') return hub.faults.clear(id) ? `${id} cleared` : `there is no active fault ${id}`
  hub.faults.clearAll()
  return 'all faults cleared'
}

function act(hub: SimulatedHub, [action, target]: readonly string[], values: Values): string {
  const parsed = ActBody.safeParse({ action, target, ...values })
  if (!parsed.success) return complaint(parsed.error)
  const result = hub.act(parsed.data)
  return result.ok ? JSON.stringify(result.detail) : result.reason
}

function power(hub: SimulatedHub, [state, controller]: readonly string[], values: Values): string {
  const parsed = PowerBody.safeParse({ state, controller, ...values })
  if (!parsed.success) return complaint(parsed.error)
  if (controller !== undefined && !hub.controllers.has(controller))
    return `there is no controller ${controller}`
  hub.power(parsed.data.state, controller, parsed.data.for_ms)
  return describe(hub)
}
