import { problemOf } from '../protocol/model/system-error.ts'
import type { Refusal } from './config.ts'

/**
 * Runs a program of the hub with its settings. Prints the help if requested. Errors in the settings or at the
 * start are printed, and the program ends with status 1.
 */
export async function runProgram<Result extends { kind: 'config' | 'unenrolled' }>(
  name: string,
  result: Result | Refusal,
  run: (result: Result) => void | Promise<void>,
): Promise<void> {
  switch (result.kind) {
    case 'help':
      process.stdout.write(result.text)
      return
    case 'problems':
      return fail(name, result.problems)
    case 'config':
    case 'unenrolled':
      try {
        return await run(result)
      } catch (error) {
        return fail(name, [problemOf(error)])
      }
  }
}

function fail(name: string, problems: readonly string[]): never {
  for (const problem of problems) process.stderr.write(`larder ${name}: ${problem}\n`)
  process.exit(1)
}
