import { signal } from '@preact/signals'
import type { Words } from './words/en.ts'

/** The catalogues by language: `de`. A further language is a file in `words/`. */
const catalogues = new Map(
  Object.entries(import.meta.glob('./words/*.ts', { eager: true })).map(([path, module]) => [
    /(\w+)\.ts$/.exec(path)![1]!,
    (module as { default: Words }).default,
  ]),
)
const KEY = 'larder-language'

/** The chosen language, else the first that the browser prefers (`Accept-Language`), else English. */
function firstLanguage(): string {
  const accepted = document.documentElement.dataset['languages'] ?? ''
  const preferred = accepted.split(',').map((each) => each.trim().slice(0, 2).toLowerCase())
  const chosen = localStorage.getItem(KEY) ?? ''
  return [chosen, ...preferred].find((language) => catalogues.has(language)) ?? 'en'
}

export const language = signal(firstLanguage())
language.subscribe((chosen) => void (document.documentElement.lang = chosen))

/** The texts of the chosen language. */
export const words = (): Words => catalogues.get(language.value)!

/** All languages with their own names. */
export const languages = [...catalogues].map(([code, { language: name }]) => ({ code, name }))

export function choose(code: string): void {
  localStorage.setItem(KEY, code)
  language.value = code
}

/** A text with its values: `filled('{count} left', { count: 2 })`. */
export const filled = (text: string, values: Readonly<Record<string, string | number>>): string =>
  text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole))

/** An amount in the hub's currency, from its smallest units. */
export function money(cents: number, currency: string): string {
  const format = new Intl.NumberFormat(language.value, { style: 'currency', currency })
  return format.format(cents / 10 ** (format.resolvedOptions().maximumFractionDigits ?? 2))
}
