import { localMoney } from '../../../protocol/model/money.ts'
import { epochMs } from '../../../protocol/ui/page-clock.ts'

/** Texts for people. */

/** `$3.78`. Until the currency is read: `…`. */
export const money = (amount: number, currency: string | undefined): string =>
  currency === undefined ? '…' : localMoney(amount, currency, 'en')

/** The present day in a time zone, `YYYY-MM-DD`. */
export const today = (timeZone?: string): string =>
  new Intl.DateTimeFormat('en-CA', { timeZone, dateStyle: 'short' }).format(epochMs())

/** The day some days later. */
export const addDays = (day: string, days: number): string =>
  new Date(Date.parse(`${day}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10)

export const weekday = (day: string): string =>
  new Date(`${day}T00:00:00Z`).toLocaleDateString('en', { weekday: 'long', timeZone: 'UTC' })

/** `Thu, Nov 26, 2:05 PM`, in a time zone of a hub. Until it is read: in that of the browser. */
export const time = (instant: string, timeZone: string | undefined): string =>
  new Date(instant).toLocaleString('en', {
    ...(instant.slice(0, 4) === today().slice(0, 4) ? { weekday: 'short' } : { year: 'numeric' }),
    month: 'short',
    day: 'numeric',
    hour: 'numeric',
    minute: '2-digit',
    timeZone,
  })

/** `Wed, Dec 2`. */
export const shortDay = (day: string): string =>
  new Date(`${day}T00:00:00Z`).toLocaleDateString('en', {
    weekday: 'short',
    month: 'short',
    day: 'numeric',
    timeZone: 'UTC',
  })

/** `12 minutes ago`. */
export function ago(instant: string): string {
  const minutes = Math.max(0, Math.round((epochMs() - Date.parse(instant)) / 60_000))
  if (minutes < 2) return 'just now'
  if (minutes < 120) return `${minutes} minutes ago`
  return minutes < 2880 ? `${Math.round(minutes / 60)} hours ago` : `${Math.round(minutes / 1440)} days ago`
}

/** `hub.count_row` → `hub count row`. */
export const words = (name: string): string => name.replaceAll(/[._-]+/g, ' ')

/** A name with a capital letter, without its underscores: `partially_refunded` → `Partially refunded`. */
export const title = (name: string): string => {
  const text = words(name).toLowerCase()
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
}
