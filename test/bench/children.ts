import { fork, type ChildProcess } from 'node:child_process'

/** Starts the program beside this file, compiled or not as this one is. It is told the end of this process by its channel. */
export function launch(name: string, args: readonly string[] = []): ChildProcess {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return fork(new URL(`./${name}.${extension}`, import.meta.url), args, { stdio: 'inherit' })
}

/** The next message of a child. Rejects where it ends without one. */
export function answer(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null): void => reject(new Error(`it ended (${code}) without an answer`))
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

/** Closes the child's channel, upon which it ends. */
export async function dismiss(child: ChildProcess): Promise<void> {
  if (child.connected) child.disconnect()
  await ended(child)
}
