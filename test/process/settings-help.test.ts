import { expect, test } from 'vitest'
import { cloudSettings } from '../../cloud/platform/settings/config.ts'
import { readConfig } from '../../edge/config.ts'
import { readManagementConfig } from '../../edge/management/config.ts'
import { helpText } from '../../protocol/model/program-settings.ts'
import { demoHelp } from '../../simulator/demo/settings.ts'
import { simulatorSettings } from '../../simulator/settings.ts'

const textOf = (refusal: { kind: string; text?: string }): string => refusal.text ?? ''

/** The `--help` text of each program. */
const helps: Readonly<Record<string, string>> = {
  cloud: helpText('usage', cloudSettings),
  edge: textOf(readConfig(['--help'], {})),
  management: textOf(readManagementConfig(['--help'], {})),
  simulator: helpText('usage', simulatorSettings),
  demo: demoHelp(),
}

/** Every setting of a help text, with its description of one or more lines. */
function settingsIn(help: string): [name: string, text: string][] {
  return [...help.matchAll(/^ {2}([A-Z][A-Z0-9_]+)(?: \(required\))?\n((?: {6}.*\n?)+)/gm)].map(
    ([, name, text]) => [name!, text!.replaceAll(/\s+/g, ' ').trim()],
  )
}

test.each(Object.entries(helps))(
  'the help of %s starts the description of each setting with a noun, not a condition or a question',
  (_program, help) => {
    const settings = settingsIn(help)
    expect(settings.length).toBeGreaterThan(4)
    // Texts that do not start with a noun: "How long …", "A hub that …", "So many …", "And, as this doubles
    // …".
    const wrongStart =
      /^(How|What|Whether|Who|Whom|Where|When|Of|A|An|The (?!same)|So|And|But|More|For|To|In|With|After|If)\b/
    const odd = /\bso (long|many|often|much)\b|\banew\b|\bhowever slow\b|\bor not: nobody\b/i
    const wrong = settings.filter(([, text]) => wrongStart.test(text) || odd.test(text))
    expect(wrong).toEqual([])
  },
)

test.each(Object.entries(helps))(
  'the help of %s names the unit of each duration and each size',
  (_program, help) => {
    const unitOf = (name: string): RegExp | undefined => {
      if (name.endsWith('_MS')) return /milliseconds/
      if (name.endsWith('_DAYS')) return /days/
      if (name.endsWith('_CENTS')) return /cents/i
      return /_KB$|_MB$/.test(name) ? /\b[KM]i?B\b/ : undefined
    }
    const wrong = settingsIn(help).filter(([name, text]) => unitOf(name)?.test(text) === false)
    expect(wrong).toEqual([])
  },
)
