"""The store on the Hub: four dataset repositories, changed only by compare-and-swap commits."""
