import { fork, type ChildProcess } from 'node:child_process'
import { commandOf } from '../support/programs.ts'

/** Starts the compiled program `name` of this folder with a program of Node. Its channel closes when this process ends. */
export function launch(
  name: string,
  args: readonly string[] = [],
  execPath: string = process.execPath,
): ChildProcess {
  const [, file] = commandOf(`test/bench/${name}`)
  return fork(file!, args, { stdio: 'inherit', execPath })
}

/** The next message of a child. Rejects if the child ends first, or has ended. */
export function answer(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null): void => reject(new Error(`it ended (${code}) without an answer`))
    if (child.exitCode !== null) return onExit(child.exitCode)
    child.once('exit', onExit)
    child.once('message', (message) => {
      child.off('exit', onExit)
      resolve(message)
    })
  })
}

export const ended = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    child.once('exit', () => resolve())
  })

/** Closes the child's channel; the child then ends. */
export async function dismiss(child: ChildProcess): Promise<void> {
  if (child.connected) child.disconnect()
  await ended(child)
}
