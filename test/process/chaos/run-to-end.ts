import { spawn } from 'node:child_process'
import { onTestFinished } from 'vitest'
import { seedCopies } from '../../support/demo-data.ts'
import { commandOf, packageRoot } from '../../support/programs.ts'

/** Runs a program until it ends. Resolves with its status and all its output. */
export async function runToEnd(
  program: string,
  args: readonly string[],
): Promise<{ status: number | null; text: string }> {
  // The program uses the bundles and the demo's data of this run.
  seedCopies()
  const [node, ...main] = commandOf(program)
  const child = spawn(node, [...main, ...args], { cwd: packageRoot(), stdio: ['ignore', 'pipe', 'pipe'] })
  // The programs that it started end with it.
  onTestFinished(() => void child.kill('SIGKILL'))
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  const status = await new Promise<number | null>((resolve) => child.once('exit', resolve))
  return { status, text }
}
