import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { commandOf } from '../../support/programs.ts'

const root = resolve(import.meta.dirname, '../../..')

export interface CloudProgram {
  child: ChildProcess
  exited: Promise<number | null>
  output: () => string
  /** Waits until it serves; returns its port. */
  ready: () => Promise<number>
}

/** A folder that is deleted with the test. */
export function programFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'larder-cloud-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** The real program with free ports and its own folder by default; killed at the end of its test. */
export function startCloud(environment: Record<string, string>, ...args: string[]): CloudProgram {
  const folder = environment['DATA_DIR'] ?? programFolder()
  const [node, ...main] = commandOf('cloud/main')
  const child = spawn(node, [...main, ...args], {
    cwd: root,
    env: { PATH: process.env['PATH'], DATA_DIR: folder, PORT: '0', MQTT_PORT: '0', ...environment },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const exited = new Promise<number | null>((done) => child.once('exit', done))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
  })
  return {
    child,
    exited,
    output: () => output,
    async ready() {
      await expect.poll(() => output, { timeout: 45_000 }).toContain('cloud is ready')
      const line = output.split('\n').find((each) => each.includes('cloud is ready'))!
      return (JSON.parse(line) as { port: number }).port
    },
  }
}
