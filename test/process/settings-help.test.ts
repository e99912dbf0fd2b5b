import { expect, test } from 'vitest'
import { cloudSettings } from '../../cloud/platform/settings/config.ts'
import { readConfig } from '../../edge/config.ts'
import { edgeSettings } from '../../protocol/settings/hub.ts'
import { managementSettings, readManagementConfig } from '../../edge/management/config.ts'
import {
  helpText,
  settingsIn as declaredIn,
  type SettingsTable,
} from '../../protocol/model/program-settings.ts'
import { demoHelp } from '../../simulator/demo/settings.ts'
import { simulatorSettings } from '../../simulator/settings.ts'

const textOf = (refusal: { kind: string; text?: string }): string => refusal.text ?? ''

/** The `--help` text of each program. */
const helps: Readonly<Record<string, string>> = {
  cloud: helpText('usage', cloudSettings, true),
  edge: textOf(readConfig(['--help', '--all'], {})),
  management: textOf(readManagementConfig(['--help', '--all'], {})),
  simulator: helpText('usage', simulatorSettings, true),
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

test('the cloud, the hub and its management service have at most 60 settings that operators decide, and no others in their help', () => {
  const tables: readonly SettingsTable[] = [cloudSettings, edgeSettings, managementSettings]
  const decided = new Set<string>()
  for (const table of tables) {
    const listed = settingsIn(helpText('usage', table)).map(([name]) => name)
    const own = [...declaredIn(table)].filter(([, { isLimit }]) => !isLimit).map(([name]) => name)
    expect(listed.toSorted()).toEqual(own.toSorted())
    for (const name of own) decided.add(name)
  }
  expect(decided.size).toBeLessThanOrEqual(60)
})

/** Settings that the documentation of the API and of the programs names. */
const promised =
  `PUBLIC_URL TRUSTED_PROXIES DATABASE_URL MEDIA_URL MQTT_URL MQTT_HOST MQTT_CERT MQTT_KEY NODE_ENV PAYMENTS_URL
  IDENTITY_ISSUER WEBHOOK_ALLOW_PRIVATE SMTP_URL WEBHOOKS_PER_OWNER IDENTITY_CLOCK_TOLERANCE_S PAYMENT_HOLD_MS
  EXTERNAL_CLAIM_MS UNPAID_ORDERS_PER_USER UNPAID_UNITS_PER_ORDER ORPHANED_PAYMENTS LOW_STOCK HUB_SILENT_ALARM_MS
  MAIL_GATHER_MS HARDWARE STORE GPIO HEALTH_SHUTOFF_MS`.split(/\s+/)

test('the help lists every setting that the documentation of the API names', () => {
  const listed = [cloudSettings, edgeSettings].flatMap((table) =>
    settingsIn(helpText('usage', table)).map(([name]) => name),
  )
  expect(promised.filter((name) => !listed.includes(name))).toEqual([])
})

test('the help of a limit states its bounds', () => {
  expect(helps['cloud']).toContain('  LEASE_MS\n')
  expect(new Map(settingsIn(helps['cloud']!)).get('LEASE_MS')).toMatch(/Default: 60000, 1000 to 3600000$/)
})
