import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { routedCommands } from '../../../protocol/contract/command-route.ts'
import { routes } from '../../../protocol/contract/routes.ts'
import { type CommandName, commandNames, commandRow } from '../../../protocol/model/hub-commands.ts'

const specFile = resolve(import.meta.dirname, '../../../protocol/mqtt/SPEC.md')
const code = (words: readonly string[]): string => words.map((word) => `\`${word}\``).join(', ')

function callersOf(name: CommandName): string {
  const { callers, page } = commandRow(name)
  const { owner, customer } = callers
  return [owner && `owner (\`${owner}\`)`, customer && 'customer', page && 'page'].filter(Boolean).join(', ')
}

/** A line of the table in SPEC §6. */
function lineOf(name: CommandName): string {
  const { summary, parameters, result, deadline, deadlinePerCycle, isRepeatable } = commandRow(name)
  const data = result ? `\`{${Object.keys(result.shape).join(', ')}}\`` : 'null'
  const time = deadlinePerCycle === undefined ? deadline : `${deadline} + ${deadlinePerCycle} × cycles`
  const again = isRepeatable ? 'yes' : 'no'
  return `| \`${name}\` | ${summary} | ${code(Object.keys(parameters))} | ${data} | ${callersOf(name)} | ${time} | ${again} |`
}

test('the table of commands in the SPEC equals the table of the code (vitest -u writes it)', async () => {
  const spec = readFileSync(specFile, 'utf8')
  const table = /(?<=\n\| Command \|.*\n\|-.*\n)(\|.*\n)+/
  expect(spec).toMatch(table)
  const lines = commandNames.map((name) => `${lineOf(name)}\n`).join('')
  await expect(spec.replace(table, () => lines)).toMatchFileSnapshot(specFile)
})

test.each(commandNames)('the example of the command %s is a valid result', (name) => {
  const { result, example } = commandRow(name)
  if (result === null) return expect(example).toBeNull()
  expect(z.strictObject(result.shape).safeParse(example).error).toBeUndefined()
})

test.each(commandNames)('the page’s path of the command %s names only its parameters', (name) => {
  const { page, parameters } = commandRow(name)
  const named = [...(page?.path.matchAll(/\{(\w+)\}/g) ?? [])].map(([, parameter]) => parameter!)
  const known = Object.keys(parameters)
  expect(known).toEqual(expect.arrayContaining([...named, ...Object.keys(page?.defaults ?? {})]))
})

test.each(routedCommands)('the route of the command %s needs the scope of its table row', (name) => {
  expect(routes[`owner.controls.${name}`].auth).toEqual({
    kind: 'api',
    scope: commandRow(name).callers.owner,
  })
})
