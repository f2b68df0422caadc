"""The store on the Hub: three dataset repositories, changed only by compare-and-swap commits."""
