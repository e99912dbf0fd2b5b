import { encodeQR } from 'qr'

/** The hub's own page, and how a technician's telephone logs in there. */
export interface HubLogin {
  /** The page, with the token behind `#`, which browsers send to nobody. */
  link: string
  /** The link as a QR code: a row of modules in each text, `1` is dark. */
  code: string[]
}

export function hubLogin(url: string, token: string): HubLogin {
  const link = `${url.replace(/\/$/, '')}/#token=${encodeURIComponent(token)}`
  const modules = encodeQR(link, 'raw', { border: 2 })
  return { link, code: modules.map((row) => row.map((isDark) => (isDark ? '1' : '0')).join('')) }
}
