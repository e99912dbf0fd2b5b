import { spawn } from 'node:child_process'
import { createInterface, type Interface } from 'node:readline/promises'
import { Unasked } from './host.ts'

/** A switch for the board's power. */
export interface Power {
  /** Called before a motion in which the power will be cut, with a description of the motion. */
  prepare(what: string): Promise<void>
  /** Resolves when the power is off. */
  off(): Promise<void>
  on(): Promise<void>
  close(): void
}

/** A relay that a shell command switches. The state (`off` or `on`) replaces `{}` in the command, or is appended. */
export function relayPower(command: string): Power {
  const run = (state: 'on' | 'off'): Promise<void> =>
    new Promise((resolve, reject) => {
      const line = command.includes('{}') ? command.replaceAll('{}', state) : `${command} ${state}`
      const child = spawn('sh', ['-c', line], { stdio: ['ignore', 'ignore', 'inherit'] })
      child.once('error', reject)
      child.once('exit', (code) =>
        code === 0 ? resolve() : reject(new Unasked(`the relay’s command ended with ${code}: ${line}`)),
      )
    })
  return { prepare: async () => {}, off: () => run('off'), on: () => run('on'), close() {} }
}

/** A person who pulls the plug. */
export function operatorPower(input: NodeJS.ReadableStream, output: NodeJS.WritableStream): Power {
  let lines: Interface | undefined
  const ask = async (text: string): Promise<void> => {
    lines ??= createInterface({ input, output })
    await lines.question(`\n  ${text} `)
  }
  return {
    prepare: (what) => ask(`Take the plug of the controller in your hand. Press Enter, and pull it ${what}.`),
    off: () => ask('Press Enter when the plug is out.'),
    on: () => ask('Put the plug in again and press Enter.'),
    close: () => lines?.close(),
  }
}
