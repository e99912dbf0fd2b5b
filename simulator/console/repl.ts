import { writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { Clock } from '../../protocol/model/runtime.ts'
import { faultKinds, type FaultType, faultTypes } from '../faults/fault-types.ts'
import type { Fault } from '../faults/faults.ts'
import type { HubState } from '../hub-state.ts'
import type { Simulator } from '../interface/client.ts'
import type { Act } from '../physics/world-state.ts'
import type { WireEntry } from '../wire-entry.ts'
import { scenarioCommand, scenarioHelp, type ScenarioCall, argumentsOf } from './scenario-command.ts'

interface ReplOptions {
  clock: Clock
  input: Readable
  output: Writable
  onExit: () => void
}

/**
 * The technician's console in a terminal, for this program or another running simulator. Calls `onExit` when the person
 * leaves it.
 */
export function startRepl(simulator: Simulator, { clock, input, output, onExit }: ReplOptions): void {
  const session = createSession(simulator, clock)
  const terminal = createInterface({
    input,
    output,
    completer: (line: string) => [completions.filter((one) => one.startsWith(line)), line],
  })
  let isClosed = false
  let hasLeft = false
  const ask = (): void => {
    const prompt = `hub ${session.hubId() ?? '?'}> `
    // The input has ended, but earlier commands are still answered.
    if (isClosed) return void output.write(prompt)
    terminal.setPrompt(prompt)
    terminal.prompt()
  }
  /** Commands run one after another, in the order of the input. */
  let work = session.begin().catch((error: Error) => void output.write(`${error.message}\n`))
  output.write('help lists the commands\n')
  void work.then(ask)
  terminal.on('line', (line) => {
    work = work.then(async () => {
      if (hasLeft) return
      hasLeft = ['exit', 'quit'].includes(line.trim())
      if (hasLeft) return terminal.close()
      const text = await session.answer(line, (progress) => output.write(`${progress}\n`))
      if (text) output.write(`${text}\n`)
      ask()
    })
  })
  terminal.on('close', () => {
    isClosed = true
    void work.then(onExit)
  })
}

/** Shows the progress of a command. */
export type Show = (progress: string) => void

export interface Session {
  hubId(): number | undefined
  /** Selects the first hub. */
  begin(): Promise<void>
  /** Executes one line and returns the text to print. Returns errors as text instead of throwing. */
  answer(line: string, show?: Show): Promise<string>
}

/** A person at a terminal, with the selected hub. */
export function createSession(simulator: Simulator, clock: Clock): Session {
  let id: number | undefined
  const hubs = async (): Promise<number[]> =>
    (await simulator.ask<{ hub_id: number }[]>('GET', '/api/hubs')).map(({ hub_id }) => hub_id)

  async function answer(line: string, show: Show): Promise<string> {
    const [command = '', ...rest] = line.trim().split(/\s+/)
    if (command === '') return ''
    if (!Object.hasOwn(commands, command)) return `unknown command ${command}; help lists them`
    const { words, values } = argumentsOf(rest)
    if (command === 'hub' && !['add', 'remove'].includes(words[0] ?? '')) {
      const known = await hubs()
      if (words[0] === undefined) return `hubs: ${known.join(', ')}`
      if (!known.includes(Number(words[0]))) return `hub ${words[0]} is not simulated here`
      id = Number(words[0])
      return ''
    }
    if (command === 'help') return commandHelp
    id ??= (await hubs())[0]
    if (id === undefined) return 'no hub is simulated'
    const hubId = id
    const ask = <T>(method: string, path: string, body?: object): Promise<T> =>
      simulator.ask<T>(method, `/api/hubs/${hubId}${path}`, body)
    const text = line.trim().slice(command.length)
    return commands[command]!.run({ simulator, clock, hubId, ask, words, values, text, show })
  }

  return {
    hubId: () => id,
    async begin() {
      id = (await hubs())[0]
    },
    async answer(line, show = () => {}) {
      try {
        return await answer(line, show)
      } catch (error) {
        return (error as Error).message
      }
    },
  }
}

interface CommandCall extends ScenarioCall {
  ask: <T>(method: string, path: string, body?: object) => Promise<T>
}

interface Command {
  /** Lines of the help: the usage, and an explanation if necessary. */
  help: readonly (readonly [call: string, meaning?: string])[]
  run(call: CommandCall): Promise<string>
}

/** The console's commands: a name, arguments, and `name=value` pairs. They cover everything that the page can do. */
const commands: Readonly<Record<string, Command>> = {
  state: {
    help: [['state', 'the state of all devices']],
    run: async ({ ask }) => describe(await ask<HubState>('GET', '/state')),
  },
  rows: { help: [['rows [CABINET]', 'units in the rows']], run: rows },
  log: { help: [['log [N]', 'the last N physical acts (10)']], run: log },
  faults: { help: [['faults', 'active faults']], run: listFaults },
  fault: {
    help: [['fault types', 'lists all types of faults'], ['fault TYPE [TARGET] [for_ms=N] [probability=P]']],
    run: raise,
  },
  clear: { help: [['clear ID|all', 'clears a fault']], run: clear },
  act: {
    help: [
      ['act take_items BIN [units=N]', 'actions of people'],
      ['act put_items BIN [units=N]'],
      ['act open_door|close_door DOOR'],
      ['act restock CABINET shelf=N row=N units=N [product_id=N]'],
      ['act press CONTROLLER', 'its reset button'],
    ],
    run: async ({ ask, words: [action, target], values }) =>
      JSON.stringify(await ask('POST', '/act', { action, target, ...values })),
  },
  power: {
    help: [['power off|on [CONTROLLER] [for_ms=N]']],
    async run({ ask, words: [state, controller], values }) {
      await ask('POST', '/power', { state, controller, ...values })
      return describe(await ask<HubState>('GET', '/state'))
    },
  },
  wire: {
    help: [
      ['wire [N]', 'the last N frames, edges and motions (10)'],
      ['wire to=FILE', 'exports all: FILE.vcd for a logic analyser’s viewer, FILE.jsonl'],
      ['wire send CONTROLLER LINE…', 'sends a line as the hub; wire answer: as the board'],
    ],
    run: wire,
  },
  world: {
    help: [['world', 'lists the saved worlds'], ['world save|load NAME'], ['world reset']],
    run: world,
  },
  scenario: { help: scenarioHelp, run: scenarioCommand },
  hub: {
    help: [
      ['hub [ID]', 'shows or selects the hub of the commands'],
      ['hub add ID', 'adds a hub with the same hardware'],
      ['hub remove ID'],
    ],
    run: changeHubs,
  },
  help: { help: [['help, exit']], run: () => Promise.resolve('') },
}

export const commandHelp = Object.values(commands)
  .flatMap(({ help }) => help.map(([call, meaning]) => (meaning ? `${call.padEnd(35)}${meaning}` : call)))
  .join('\n')

const completions = [...Object.keys(commands), 'exit', ...faultTypes.map((type) => `fault ${type}`)]

function describe(state: HubState): string {
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

async function rows({ ask, words: [cabinet] }: CommandCall): Promise<string> {
  const state = await ask<HubState>('GET', '/state')
  const wanted = state.rows.filter(
    (row) => cabinet === undefined || `${row.cabinet}` === cabinet.replace('cabinet-', ''),
  )
  const shelves = new Map<string, string[]>()
  for (const row of wanted) {
    const key = `cabinet-${row.cabinet} shelf ${row.shelf}`
    shelves.set(key, [...(shelves.get(key) ?? []), `${row.units}/${row.depth}`])
  }
  return [...shelves].map(([key, units]) => `${key}  ${units.join('  ')}`).join('\n') || 'no such cabinet'
}

const countOf = (word: string | undefined): number | undefined => {
  const count = Number(word ?? 10)
  return Number.isInteger(count) && count > 0 ? count : undefined
}

async function log({ ask, words }: CommandCall): Promise<string> {
  const count = countOf(words[0])
  if (count === undefined) return 'log needs a whole number greater than 0'
  const acts = await ask<Act[]>('GET', '/actuations')
  const lines = acts
    .slice(-count)
    .map(({ n, at, device, action, operation_id, detail }) =>
      [n, at, device, action, operation_id ?? '-', JSON.stringify(detail)].join('  '),
    )
  return lines.join('\n') || 'nothing has happened yet'
}

async function wire({ ask, words, values }: CommandCall): Promise<string> {
  if (values['to'] !== undefined) {
    const [file, kind] = [String(values['to']), /\.(vcd|jsonl)$/.exec(String(values['to']))?.[1]]
    if (kind === undefined) return 'wire to=FILE needs a file that ends with .vcd or .jsonl'
    writeFileSync(file, await ask<string>('GET', `/wire.${kind}`))
    return `the wire is in ${file}`
  }
  const [verb, controller, ...rest] = words
  if (verb === 'send' || verb === 'answer') {
    const direction = verb === 'send' ? 'to_controller' : 'to_hub'
    const sent = await ask<{ line: string }>('POST', '/wire', { controller, direction, line: rest.join(' ') })
    return sent.line
  }
  const count = countOf(verb)
  if (count === undefined) return 'wire needs a whole number greater than 0, send or answer'
  const entries = await ask<WireEntry[]>('GET', '/wire')
  return entries.slice(-count).map(wireLine).join('\n') || 'nothing has passed yet'
}

function wireLine(entry: WireEntry): string {
  const at = `${entry.n}  ${entry.at_ms} ms`
  switch (entry.kind) {
    case 'frame':
      return `${at}  ${entry.controller} ${entry.direction === 'to_hub' ? '→ hub' : '← hub'}  ${entry.line}${entry.error === undefined ? '' : `  (${entry.error})`}`
    case 'edge':
      return `${at}  ${entry.gpio} = ${entry.level} by ${entry.by}`
    case 'motion':
      return `${at}  ${entry.device} ${entry.action} ${entry.phase}`
  }
}

async function listFaults({ ask }: CommandCall): Promise<string> {
  const faults = await ask<Fault[]>('GET', '/faults')
  const lines = faults.map(
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

async function raise({ ask, words: [type, ...named], values }: CommandCall): Promise<string> {
  // A row is two words: row 1/2/3.
  const target = named.length === 0 ? undefined : named.join(' ')
  if (type === 'types') return faultTable()
  if (type === undefined || !Object.hasOwn(faultKinds, type))
    return type === undefined ? 'fault needs a type; fault types lists them' : `there is no fault ${type}`
  const fault = await ask<Fault>('POST', '/faults', { type, target, ...values })
  return `${fault.id}  ${faultKinds[type as FaultType].description}`
}

async function clear({ ask, words: [id] }: CommandCall): Promise<string> {
  if (id === undefined) return 'clear needs the id of a fault, or all'
  await ask('DELETE', id === 'all' ? '/faults' : `/faults/${encodeURIComponent(id)}`)
  return id === 'all' ? 'all faults cleared' : `${id} cleared`
}

async function world({ simulator, ask, words: [action, name] }: CommandCall): Promise<string> {
  const worlds =
    action === undefined
      ? await simulator.ask<string[]>('GET', '/api/worlds')
      : (await ask<{ worlds: string[] }>('POST', '/world', { action, name })).worlds
  return `worlds: ${worlds.join(', ') || 'none'}`
}

async function changeHubs({ simulator, hubId, words: [verb, word] }: CommandCall): Promise<string> {
  if (!/^\d+$/.test(word ?? '')) return `hub ${verb} needs the number of a hub`
  if (verb === 'add') {
    await simulator.ask('POST', '/api/hubs', { hub_id: Number(word), like: hubId })
    return `hub ${word} is simulated`
  }
  await simulator.ask('DELETE', `/api/hubs/${word}`)
  return `hub ${word} is removed`
}
