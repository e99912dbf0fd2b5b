import { spawn } from 'node:child_process'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')

/** The example controller in operation: one program for each board. */
export interface ExampleFirmware {
  /** `ID=unix:PATH,…`, the value for the simulator. */
  readonly boards: string
  /** Error output of the programs. */
  complaints(): string
  /** Stops the programs, as a busy machine does, or lets them continue. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
  stop(): Promise<void>
}

export function runExampleFirmware(folder: string, controllers: readonly string[]): ExampleFirmware {
  let text = ''
  const addressOf = (id: string): string => `unix:${join(folder, `board-${id}.sock`)}`
  const children = controllers.map((id) => {
    const child = spawn('python3', ['simulator/firmware/example/controller.py', addressOf(id)], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    child.stderr.on('data', (chunk: Buffer) => void (text += chunk.toString()))
    return { child, ended: new Promise((resolve) => child.once('exit', resolve)) }
  })
  return {
    boards: controllers.map((id) => `${id}=${addressOf(id)}`).join(','),
    complaints: () => text,
    signal: (signal) => children.forEach(({ child }) => child.kill(signal)),
    async stop() {
      for (const { child } of children) child.kill('SIGKILL')
      await Promise.all(children.map(({ ended }) => ended))
    },
  }
}
