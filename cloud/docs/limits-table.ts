import type { Description } from './description.ts'

/** How often what may be called, of the description. */
export function limitsTable({ paths }: Description): string {
  const groups = new Map<string, string[]>()
  for (const [path, item] of Object.entries(paths))
    for (const [method, operation] of Object.entries(item)) {
      if (operation['x-same-as'] !== undefined) continue
      const rule = operation['x-requests-per-minute']?.toString() ?? 'not limited'
      groups.set(rule, [...(groups.get(rule) ?? []), `\`${method.toUpperCase()} ${path}\``])
    }
  const [most, ...others] = [...groups].toSorted(([, one], [, other]) => other.length - one.length)
  const rows = others.map(([rule, endpoints]) => `| ${rule} | ${endpoints.join(', ')} |`)
  return ['| Calls a minute | Of |', '|---|---|', ...rows, `| ${most?.[0]} | all others |`].join('\n')
}
