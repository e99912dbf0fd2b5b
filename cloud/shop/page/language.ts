import { signal } from '@preact/signals'
import { localMoney } from '../../../protocol/model/money.ts'
import { BrowserStorage } from '../../../protocol/ui/browser-storage.ts'
import type { Words } from './words/en.ts'

/** The catalogues by language: `de`. A further language is a file in `words/`. */
const catalogues = new Map(
  Object.entries(import.meta.glob('./words/*.ts', { eager: true })).map(([path, module]) => [
    /(\w+)\.ts$/.exec(path)![1]!,
    (module as { default: Words }).default,
  ]),
)
const KEY = 'larder-language'
const storage = new BrowserStorage(() => localStorage)

/** The chosen language, else the first that the browser prefers (`Accept-Language`), else English. */
function firstLanguage(): string {
  const accepted = document.documentElement.dataset['languages'] ?? ''
  const preferred = accepted.split(',').map((each) => each.trim().slice(0, 2).toLowerCase())
  const chosen = storage.getItem(KEY) ?? ''
  return [chosen, ...preferred].find((language) => catalogues.has(language)) ?? 'en'
}

export const language = signal(firstLanguage())
language.subscribe((chosen) => void (document.documentElement.lang = chosen))

/** The texts of the chosen language. */
export const words = (): Words => catalogues.get(language.value)!

/** All languages with their own names. */
export const languages = [...catalogues].map(([code, { language: name }]) => ({ code, name }))

export function choose(code: string): void {
  storage.setItem(KEY, code)
  language.value = code
}

/** A text with its values: `filled('{count} left', { count: 2 })`. */
export const filled = (text: string, values: Readonly<Record<string, string | number>>): string =>
  text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole))

/** `$3.78`, or `3,78 $` in German. */
export const money = (amount: number, currency: string): string =>
  localMoney(amount, currency, language.value)
