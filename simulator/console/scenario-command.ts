import { readFileSync, writeFileSync } from 'node:fs'
import { parse } from 'yaml'
import type { Clock } from '../../protocol/model/runtime.ts'
import { problemOf } from '../../protocol/model/system-error.ts'
import type { Simulator } from '../interface/client.ts'
import type { Listed, Run } from '../scenarios/results.ts'
import { runAndWatch, stepLine } from '../scenarios/watch.ts'

export const scenarioHelp = [
  ['scenario', 'lists the scenarios'],
  ['scenario run NAME [parameter=value]', 'runs a scenario and shows its steps'],
  ['scenario stop', 'ends the running scenario before its next step'],
  ['scenario do STEP', 'runs one step at once: scenario do pay: {customer: ann}'],
  ['scenario record', 'starts to record your actions'],
  ['scenario save NAME', 'ends the recording and saves it'],
  ['scenario show NAME [to=FILE]', 'shows its text, or writes it to a file'],
  ['scenario edit NAME from=FILE', 'saves the text of a file'],
  ['scenario remove NAME'],
] as const

export interface ScenarioCall {
  simulator: Simulator
  clock: Clock
  hubId: number
  words: readonly string[]
  values: Values
  /** The typed line after the command. */
  text: string
  show: (progress: string) => void
}

export async function scenarioCommand(call: ScenarioCall): Promise<string> {
  const { simulator, hubId, values } = call
  const [verb, name = ''] = call.words
  const path = `/api/scenarios/${encodeURIComponent(name)}`
  switch (verb) {
    case undefined:
      return (await simulator.ask<Listed[]>('GET', '/api/scenarios')).map(lineOf).join('\n')
    case 'run': {
      const request = { hub_id: hubId, name, parameters: values }
      const run = await runAndWatch(
        { simulator, clock: call.clock, isStopped: () => false },
        request,
        (step) => call.show(stepLine(step)),
      )
      return outcomeOf(run)
    }
    case 'stop': {
      const running = (await simulator.ask<Run[]>('GET', '/api/runs')).filter(
        ({ state }) => state === 'running',
      )
      for (const { id } of running) await simulator.ask('DELETE', `/api/runs/${id}`)
      return running.length > 0 ? 'it ends before its next step' : 'no scenario runs'
    }
    case 'do': {
      const step: unknown = parse(call.text.replace(/^\s*do\s+/, ''))
      return JSON.stringify(await simulator.ask('POST', '/api/steps', { hub_id: hubId, step }))
    }
    case 'record':
      await simulator.ask('POST', '/api/recording', { hub_id: hubId })
      return 'what is done is written down, until scenario save NAME'
    case 'save': {
      const { text } = await simulator.ask<{ text: string }>(
        'DELETE',
        `/api/recording?name=${encodeURIComponent(name)}`,
      )
      try {
        await simulator.ask('PUT', path, { text })
      } catch (error) {
        // The recording has ended: this is its only copy.
        throw new Error(`${problemOf(error)}. The recording has ended. Its text:\n\n${text}`, {
          cause: error,
        })
      }
      return text
    }
    case 'show': {
      const { text } = await simulator.ask<{ text: string }>('GET', path)
      if (values['to'] === undefined) return text
      writeFileSync(String(values['to']), text)
      return `${name} is in ${values['to']}`
    }
    case 'edit':
      await simulator.ask('PUT', path, { text: readFileSync(String(values['from'] ?? ''), 'utf8') })
      return `${name} is kept`
    case 'remove':
      await simulator.ask('DELETE', path)
      return `${name} is removed`
    default:
      return `scenario ${verb}: there is no such command; help lists them`
  }
}

const lineOf = ({ name, source, description, problems }: Listed): string =>
  `${name.padEnd(24)}${source === 'own' ? '(own) ' : ''}${problems ? `cannot be run: ${problems[0]}` : description.split('\n')[0]}`

export const outcomeOf = ({ name, state, durationMs = 0, problem }: Run): string =>
  `${name}: ${state} after ${(durationMs / 1000).toFixed(1)} s${problem === undefined ? '' : `; ${problem}`}`

export type Values = Record<string, string | number>

/** The words of a command, and its `name=value` pairs with numbers as numbers. */
export function argumentsOf(rest: readonly string[]): { words: string[]; values: Values } {
  // The fields of a frame are pairs too. They belong to its line, which begins with `~`.
  const frame = rest.findIndex((word) => word.startsWith('~'))
  const isPair = (word: string, index: number): boolean =>
    /^[a-z][a-z0-9_]*=/.test(word) && (frame < 0 || index < frame)
  const pairs = rest.filter(isPair).map(pairOf)
  return { words: rest.filter((word, index) => !isPair(word, index)), values: Object.fromEntries(pairs) }
}

/** `name=value`. */
export function pairOf(word: string): [name: string, value: string | number] {
  const at = word.indexOf('=')
  const text = word.slice(at + 1)
  return [word.slice(0, at), text !== '' && Number.isFinite(Number(text)) ? Number(text) : text]
}
