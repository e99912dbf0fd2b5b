import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { faultTypes } from '../faults/fault-types.ts'
import type { SimulatedHub } from '../simulated-hub.ts'
import { runCommand } from './commands.ts'

const words = ['state', 'rows', 'log', 'faults', 'fault', 'clear', 'act', 'power', 'hub', 'help', 'exit']
const completions = [...words, ...faultTypes.map((type) => `fault ${type}`)]

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
