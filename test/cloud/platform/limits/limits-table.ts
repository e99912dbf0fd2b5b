import { settingsIn, type Setting } from '../../../../protocol/model/program-settings.ts'
import { cloudSettings } from '../../../../cloud/platform/settings/config.ts'
import { budgets, type BudgetName } from '../../../../cloud/platform/limits/budgets.ts'
import { otherLimits } from './other-limits.ts'

/** The operator's name of a setting. */
const nameOf = (key: string): string => key.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()

/** All shared limits, as the table of cloud/README: lines of Markdown. */
export function limitsTable(): string[] {
  const settings: ReadonlyMap<string, Setting> = settingsIn(cloudSettings)
  const shown = (name: string): string =>
    `\`${name}\` ${Number(settings.get(name)!.standard).toLocaleString('en')}`
  const held = (Object.keys(budgets) as BudgetName[]).map((name) => {
    const { what, shares, atShare, ...declared } = budgets[name]
    const total = 'total' in declared ? shown(nameOf(declared.total)) : '–'
    const parts = Object.entries(shares).map(([axis, key]) => `${axis}: ${shown(nameOf(key))}`)
    const end = atShare === 'refuse' ? '429' : 'the largest or oldest of the same share ends'
    return `| ${what} | ${total} | ${parts.join('; ')}; beyond: ${end} |`
  })
  const others = otherLimits.map(({ what, settings: names, share }) => {
    return `| ${what} | ${names.map(shown).join('; ')} | ${share} |`
  })
  return ['| What | Total | Shares |', '|---|---|---|', ...held, ...others]
}
